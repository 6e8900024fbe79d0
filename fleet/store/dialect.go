package store

import (
	"errors"

	"modernc.org/sqlite"
)

// dialect is what databases do each in their own way. All other statements are of the SQL
// that SQLite and PostgreSQL both know.
type dialect struct {
	tables string   // a query for the names of the tables
	first  []string // what is done before the first migration, outside a transaction
}

var sqliteDialect = dialect{
	tables: `SELECT name FROM sqlite_master WHERE type = 'table'`,
	first:  []string{`PRAGMA journal_mode = WAL`}, // the mode stays with the file
}

// Result codes of SQLite; the higher bytes tell more.
const (
	resultReadOnly = 8
	resultCorrupt  = 11
	resultCantOpen = 14
	resultNotADB   = 26
)

func result(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// isNoPlace reports whether a database could not be opened because nothing can be written
// where it lies.
func isNoPlace(err error) bool { return result(err) == resultCantOpen || result(err) == resultReadOnly }

// IsDamage reports whether a database's file is damaged.
func IsDamage(err error) bool { return result(err) == resultCorrupt }

// IsNoDatabase reports whether a file is no database at all.
func IsNoDatabase(err error) bool { return result(err) == resultNotADB }
