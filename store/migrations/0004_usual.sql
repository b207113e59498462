-- When each adapter usually is done, as milestones are written: the message of the hint says it.
ALTER TABLE resource ADD COLUMN op_usual TEXT NOT NULL DEFAULT '';
ALTER TABLE forecast ADD COLUMN usual TEXT NOT NULL DEFAULT '';
