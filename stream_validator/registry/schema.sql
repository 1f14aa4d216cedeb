CREATE TABLE version (
    sequence INTEGER PRIMARY KEY,
    parent INTEGER REFERENCES version (sequence),
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    as_of TEXT,
    sha256 TEXT NOT NULL,
    records INTEGER NOT NULL,
    content_hash TEXT NOT NULL,
    header BLOB NOT NULL,
    report BLOB NOT NULL
);

-- One row for each state of an establishment: it holds in versions [since, until), until null while it does.
CREATE TABLE record (
    cnpj TEXT NOT NULL,
    role TEXT NOT NULL,
    since INTEGER NOT NULL REFERENCES version (sequence) DEFERRABLE INITIALLY DEFERRED,
    until INTEGER REFERENCES version (sequence) DEFERRABLE INITIALLY DEFERRED,
    body BLOB NOT NULL,
    PRIMARY KEY (cnpj, role, since)
) WITHOUT ROWID;

CREATE TRIGGER version_is_kept BEFORE UPDATE ON version BEGIN SELECT RAISE(ABORT, 'a version is never changed'); END;
CREATE TRIGGER version_is_never_deleted BEFORE DELETE ON version BEGIN SELECT RAISE(ABORT, 'a version is never deleted'); END;
CREATE TRIGGER record_is_kept BEFORE UPDATE OF cnpj, role, since, body ON record
BEGIN SELECT RAISE(ABORT, 'a record is never changed'); END;
CREATE TRIGGER record_ends_once BEFORE UPDATE OF until ON record WHEN OLD.until IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a record ends once'); END;
CREATE TRIGGER record_is_never_deleted BEFORE DELETE ON record BEGIN SELECT RAISE(ABORT, 'a record is never deleted'); END;
