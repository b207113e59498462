"""JSON Web Tokens for tests, signed by the program `openssl`; standard library otherwise."""
import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time


def b64(data):
    if not isinstance(data, bytes):
        data = json.dumps(data).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def openssl(*args, data=None):
    done = subprocess.run(("openssl",) + args, input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise AssertionError("openssl %s: %s" % (args, done.stderr.decode()))
    return done.stdout


def raw_signature(der):
    """The 64 bytes of ES256 from the DER form: two INTEGERs."""
    assert der[0] == 0x30
    at, numbers = 2, b""
    for _ in range(2):
        assert der[at] == 2
        length = der[at + 1]
        numbers += der[at + 2:at + 2 + length].lstrip(b"\0").rjust(32, b"\0")
        at += 2 + length
    return numbers


class Key:
    """A private key in a folder of its own: kind "rsa" or "ec"."""

    def __init__(self, kind="rsa", bits=2048):
        self.kind = kind
        self.folder = tempfile.mkdtemp(prefix="hfd-it-key-")
        self.private = os.path.join(self.folder, "private.pem")
        self.public = os.path.join(self.folder, "public.pem")
        options = (("RSA", "-pkeyopt", "rsa_keygen_bits:%d" % bits) if kind == "rsa" else
                   ("EC", "-pkeyopt", "ec_paramgen_curve:P-256"))
        openssl("genpkey", "-algorithm", *options, "-out", self.private)
        openssl("pkey", "-in", self.private, "-pubout", "-out", self.public)
        self.der = openssl("pkey", "-in", self.private, "-pubout", "-outform", "DER")

    def close(self):
        shutil.rmtree(self.folder)

    @property
    def fingerprint(self):
        """The kid that the Operator sends."""
        return hashlib.sha256(self.der).hexdigest()

    def jwk(self, kid, **more):
        """The public key as a member of a set of keys."""
        if self.kind == "rsa":
            text = openssl("rsa", "-in", self.private, "-noout", "-modulus").decode()
            n = bytes.fromhex(re.match(r"Modulus=([0-9A-F]+)", text).group(1))
            return dict({"kty": "RSA", "kid": kid, "use": "sig", "alg": "RS256", "n": b64(n),
                         "e": "AQAB"}, **more)
        point = self.der[-64:]
        return dict({"kty": "EC", "crv": "P-256", "kid": kid, "x": b64(point[:32]),
                     "y": b64(point[32:])}, **more)

    def sign(self, text):
        signature = openssl("dgst", "-sha256", "-sign", self.private, data=text.encode())
        return signature if self.kind == "rsa" else raw_signature(signature)

    def token(self, header, claims):
        text = "%s.%s" % (b64(header), b64(claims))
        return "%s.%s" % (text, b64(self.sign(text)))


def soon(seconds=600):
    """A time for exp."""
    return int(time.time()) + seconds
