"""Decides if a history of concurrent operations on one key is linearizable.

It is when the operations can be put in one order. An operation that ended before another began
stands before it. In that order the model allows each result. After Wing and Gong (1993), with
Lowe's memory of tried pairs: (operations already placed, state). Keys are independent, so each has
a history of its own (P-compositionality).
"""
import linear_model as model

FOREVER = float("inf")


def check(ops, start=model.START, step=model.step):
    """None when it is linearizable, else what could be placed at most: (operations, the state
    behind them).
    """
    ops = sorted(ops, key=lambda op: op.call)
    ends = [FOREVER if op.ret is None else op.ret for op in ops]
    must = sum(1 << i for i, op in enumerate(ops) if op.ret is not None)
    seen = {(0, start)}
    stack = [(0, start, ())]
    best = ((), start)
    while stack:
        placed, state, order = stack.pop()
        if placed & must == must:
            return None
        if len(order) > len(best[0]):
            best = (order, state)
        # An operation that begins after the first end of the waiting ones must wait for that one.
        first_end = min((ends[i] for i in range(len(ops)) if not placed >> i & 1), default=FOREVER)
        for i in range(len(ops) - 1, -1, -1):
            if placed >> i & 1 or ops[i].call > first_end:
                continue
            for after in step(state, ops[i]):
                key = (placed | 1 << i, after)
                if key not in seen:
                    seen.add(key)
                    stack.append((key[0], after, order + (i,)))
    return [ops[i] for i in best[0]], best[1]


def short(value):
    """A result without the length of its cookie."""
    if isinstance(value, dict) and value.get("cookie"):
        return dict(value, cookie="..." + value["cookie"][-6:])
    return value


def argument(op):
    if op.kind == "DELETE" and op.arg:
        return "with the cookie ..." + op.arg[-6:]
    return op.arg or ""


def explain(ops, failure):
    """A history and how far it makes sense, as text."""
    placed, state = failure
    base = min(op.call for op in ops)
    state = state._replace(cookie=state.cookie and "..." + state.cookie[-6:], old=len(state.old),
                           ended=len(state.ended))
    lines = ["not linearizable: %d of %d operations can be placed, then the state is"
             % (len(placed), len(ops)), "  %s" % (state,)]
    for op in sorted(ops, key=lambda o: o.call):
        where = "#%-3d" % placed.index(op) if op in placed else "  - "
        end = "   ...   " if op.ret is None else "%9.3f" % ((op.ret - base) * 1e3)
        lines.append("  %s %9.3f %s ms  %s %s -> %s"
                     % (where, (op.call - base) * 1e3, end, op.kind, argument(op),
                        short(op.result)))
    return "\n".join(lines)
