package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dumptriage/fleet/similar"
)

// Incident is a dump and what is known of it.
type Incident struct {
	Key       string // of its content
	Path      string
	Status    string
	Reason    string    // of a failure
	Captured  time.Time // zero when not known
	Process   string
	Version   string // of the process's image, "" unknown
	Arch, OS  string
	Threads   int
	Algorithm string // of the signature; "" when there is none
	Kind      string
	Class     string
	Text      string
	Bucket    string
	Stack     string   // id of the canonical stack
	Frames    []string // innermost first
	Modules   []Module // on the stack
}

// Module is a build of a module.
type Module struct{ Name, Version, CodeID string }

// Regression is a dump of a bucket that was to be fixed in the dump's version.
type Regression struct{ Bucket, Key, Version, Fixed string }

// batchSize is how many incidents one transaction adds.
const batchSize = 128

// maxText is how long a text of a dump may be that is kept: far longer than names and
// messages are, and short enough for a database of many.
const maxText = 4 << 10

// capped is a text, or its begin and how much was cut off.
func capped(s string) string {
	s = storable(s)
	if len(s) <= maxText {
		return s
	}
	keep := strings.ToValidUTF8(s[:maxText-32], "") // what comes out is not cut again
	return fmt.Sprintf("%s... (%d bytes more)", keep, len(s)-len(keep))
}

// storable is a text as every database takes it: UTF-8, and without a zero, at which some
// end a text.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// capTexts cuts what is too long. Paths stay: they are to be opened by.
func (in *Incident) capTexts() {
	for _, s := range []*string{&in.Reason, &in.Process, &in.Version, &in.Arch, &in.OS, &in.Algorithm, &in.Kind, &in.Class, &in.Text} {
		*s = capped(*s)
	}
	in.Path = storable(in.Path)
	in.Frames = slices.Clone(in.Frames)
	for i := range in.Frames {
		in.Frames[i] = capped(in.Frames[i])
	}
	in.Modules = slices.Clone(in.Modules)
	for i, m := range in.Modules {
		in.Modules[i] = Module{capped(m.Name), capped(m.Version), capped(m.CodeID)}
	}
}

// Add adds an incident; it is written with others, at the latest by Flush or
// Close. One without a key, whose files could not be read, is not kept.
func (s *Store) Add(ctx context.Context, in Incident) error {
	if in.Key == "" {
		return nil
	}
	in.capTexts()
	if s.pending = append(s.pending, in); len(s.pending) < batchSize {
		return nil
	}
	return s.Flush(ctx)
}

// Flush writes what was added.
func (s *Store) Flush(ctx context.Context) error {
	if len(s.pending) == 0 {
		return nil
	}
	batch := s.pending
	s.pending = nil
	err := s.inTransaction(ctx, func(tx *sql.Tx) error {
		a := adder{s, ctx, tx}
		if err := a.loadModel(); err != nil {
			return err
		}
		for i := range batch {
			if err := a.add(&batch[i]); err != nil {
				return err
			}
		}
		return a.keepModel()
	})
	if err != nil {
		s.model = nil // it is ahead of the database
	}
	return err
}

// Regressions returns those that were met since the store was opened.
func (s *Store) Regressions() []Regression { return s.regressed }

// Made reports whether a bucket was not there when the store was opened: its first dump
// was added since.
func (s *Store) Made(bucket string) bool { return s.made[bucket] }

// adder adds incidents in one transaction.
type adder struct {
	*Store
	ctx context.Context
	tx  *sql.Tx
}

func (a *adder) exec(query string, args ...any) error {
	_, err := a.tx.ExecContext(a.ctx, query, args...)
	return err
}

// inserted runs an INSERT ... ON CONFLICT DO NOTHING and reports whether it did
// something.
func (a *adder) inserted(query string, args ...any) (bool, error) {
	r, err := a.tx.ExecContext(a.ctx, query, args...)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

func (a *adder) add(in *Incident) error {
	bucket, stack := sql.NullString{String: in.Bucket, Valid: in.Bucket != ""}, sql.NullString{String: in.Stack, Valid: in.Stack != "" && len(in.Frames) > 0}
	isNew, err := a.inserted(`INSERT INTO dumps (dump_key, status, reason, captured, process, version, arch, os, threads, bucket, stack)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (dump_key) DO NOTHING`,
		in.Key, in.Status, in.Reason, timeText(in.Captured), in.Process, in.Version, in.Arch, in.OS, in.Threads, bucket, stack)
	if err != nil {
		return err
	}
	if err := a.exec(`INSERT INTO dump_paths (dump_key, path) VALUES ($1, $2) ON CONFLICT (dump_key, path) DO NOTHING`, in.Key, in.Path); err != nil || !isNew {
		return err
	}
	for i, m := range in.Modules {
		if err := a.exec(`INSERT INTO dump_modules (dump_key, place, name, version, code_id) VALUES ($1, $2, $3, $4, $5)`, in.Key, i, m.Name, m.Version, m.CodeID); err != nil {
			return err
		}
	}
	if bucket.Valid {
		if err := a.count(in); err != nil {
			return err
		}
	}
	if stack.Valid {
		return a.place(in)
	}
	return nil
}

// count adds a dump to its bucket.
func (a *adder) count(in *Incident) error {
	seen := timeText(in.Captured)
	isNew, err := a.inserted(`INSERT INTO buckets (bucket, algorithm, kind, class, text, dumps, first_seen, last_seen, state, fixed_module, fixed_version, regressed_version, note)
		VALUES ($1, $2, $3, $4, $5, 1, $6, $6, 'new', '', '', '', '') ON CONFLICT (bucket) DO NOTHING`, in.Bucket, in.Algorithm, in.Kind, in.Class, in.Text, seen)
	if isNew {
		a.made[in.Bucket] = true
	}
	if err != nil || isNew {
		return err
	}
	if err := a.exec(`UPDATE buckets SET dumps = dumps + 1 WHERE bucket = $1`, in.Bucket); err != nil {
		return err
	}
	if seen.Valid {
		err := a.exec(`UPDATE buckets SET first_seen = CASE WHEN first_seen IS NULL OR first_seen > $2 THEN $2 ELSE first_seen END,
			last_seen = CASE WHEN last_seen IS NULL OR last_seen < $2 THEN $2 ELSE last_seen END WHERE bucket = $1`, in.Bucket, seen)
		if err != nil {
			return err
		}
	}
	return a.regression(in)
}

// regression notes a dump of a version in which its bucket, or the one that this is
// merged into, was to be fixed.
func (a *adder) regression(in *Incident) error {
	var bucket, module, fixed, known string
	err := a.tx.QueryRowContext(a.ctx, `SELECT bucket, fixed_module, fixed_version, regressed_version FROM buckets
		WHERE bucket = (SELECT COALESCE(merged_into, bucket) FROM buckets WHERE bucket = $1) AND state IN ('fixed', 'regressed')`, in.Bucket).Scan(&bucket, &module, &fixed, &known)
	if errors.Is(err, sql.ErrNoRows) || err == nil && fixed == "" {
		return nil
	}
	if err != nil {
		return err
	}
	version := in.versionOf(module)
	if version == "" || CompareVersions(version, fixed) < 0 {
		return nil
	}
	a.regressed = append(a.regressed, Regression{bucket, in.Key, version, fixed})
	if known != "" && CompareVersions(known, version) <= 0 {
		version = known // the first version that has it again
	}
	return a.exec(`UPDATE buckets SET state = 'regressed', regressed_version = $2 WHERE bucket = $1`, bucket, version)
}

// versionOf is the version of a module in a dump, "" unknown; of the process's
// image when none is named.
func (in *Incident) versionOf(module string) string {
	if module == "" || strings.EqualFold(module, in.Process) {
		return in.Version
	}
	for _, m := range in.Modules {
		if strings.EqualFold(m.Name, module) {
			return m.Version
		}
	}
	return ""
}

// CompareVersions compares versions number by number; a missing one is 0.
func CompareVersions(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(x), len(y)) {
		if d := versionPart(x, i) - versionPart(y, i); d != 0 {
			return d
		}
	}
	return 0
}

func versionPart(parts []string, i int) int {
	if i >= len(parts) {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(parts[i])) // what is no number is 0
	return n
}

// memoryClasses are all what comes of memory that is not what it should be: which of them
// is chance.
var memoryClasses = []string{"AV_", "HEAP_CORRUPTION", "IN_PAGE_ERROR"}

// group is what must be the same of two stacks that are compared: the kind and, as
// far as it is not chance, the class.
func (in *Incident) group() string {
	if slices.ContainsFunc(memoryClasses, func(c string) bool { return strings.HasPrefix(in.Class, c) }) {
		return in.Kind + " memory"
	}
	return in.Kind + " " + in.Class
}

// place keeps a stack that is new, and puts it into a cluster.
func (a *adder) place(in *Incident) error {
	isNew, err := a.inserted(`INSERT INTO stacks (stack, kind, score) VALUES ($1, $2, 0) ON CONFLICT (stack) DO NOTHING`, in.Stack, in.group())
	if err != nil || !isNew {
		return err
	}
	frames := in.Frames[:min(len(in.Frames), similar.MaxDepth)]
	for i, f := range frames {
		if err := a.exec(`INSERT INTO frames (stack, place, name) VALUES ($1, $2, $3)`, in.Stack, i, f); err != nil {
			return err
		}
	}
	return a.cluster(in.Stack, in.group(), frames)
}

// cluster puts a stack into a cluster.
func (a *adder) cluster(stack, group string, frames []string) error {
	p := a.model.Place(stack, group, frames)
	err := a.exec(`UPDATE stacks SET cluster = $2, score = $3, nearest = $4 WHERE stack = $1`, stack, p.Cluster, p.Score, p.Kind)
	switch {
	case err != nil:
	case p.New:
		err = a.lead(p.Cluster, group, 1)
	default:
		err = a.exec(`UPDATE clusters SET stacks = stacks + 1 WHERE cluster = $1`, p.Cluster)
	}
	if err == nil && p.Kind == stack {
		err = a.exec(`INSERT INTO representatives (cluster, place, stack) VALUES ($1, (SELECT COUNT(*) FROM representatives WHERE cluster = $1), $2)`, p.Cluster, stack)
	}
	if err != nil {
		return err
	}
	return a.remake(p.Remade)
}

// lead adds a cluster, the last.
func (a *adder) lead(cluster, group string, stacks int) error {
	return a.exec(`INSERT INTO clusters (cluster, ordinal, kind, stacks) VALUES ($1, (SELECT COALESCE(MAX(ordinal) + 1, 0) FROM clusters), $2, $3)`, cluster, group, stacks)
}

// remake gives clusters the kinds of stacks that they have now.
func (a *adder) remake(clusters []similar.Remade) error {
	for _, c := range clusters {
		if err := a.exec(`DELETE FROM representatives WHERE cluster = $1`, c.ID); err != nil {
			return err
		}
	}
	for _, c := range clusters {
		if err := a.remakeOne(c); err != nil {
			return err
		}
	}
	for _, c := range clusters { // when all have what is theirs
		if err := a.exec(`UPDATE clusters SET stacks = (SELECT COUNT(*) FROM stacks WHERE cluster = $1) WHERE cluster = $1`, c.ID); err != nil {
			return err
		}
	}
	return nil
}

func (a *adder) remakeOne(c similar.Remade) error {
	if len(c.Kinds) == 0 {
		return a.exec(`DELETE FROM clusters WHERE cluster = $1`, c.ID)
	}
	var known int
	err := a.tx.QueryRowContext(a.ctx, `SELECT COUNT(*) FROM clusters WHERE cluster = $1`, c.ID).Scan(&known)
	if err == nil && known == 0 {
		err = a.lead(c.ID, c.Group, 0)
	}
	for place, kind := range c.Kinds {
		if err == nil {
			err = a.exec(`INSERT INTO representatives (cluster, place, stack) VALUES ($1, $2, $3)`, c.ID, place, kind)
		}
		if err == nil {
			err = a.exec(`UPDATE stacks SET cluster = $2 WHERE nearest = $1`, kind, c.ID)
		}
	}
	return err
}

// loadModel reads the clusters if another process has changed them, or none has
// been read yet.
func (a *adder) loadModel() error {
	generation, err := metaNumber(a.ctx, a.tx, "generation")
	if err != nil {
		return err
	}
	if a.model == nil || generation != a.generation {
		if a.model, err = readModel(a.ctx, a.tx, a.params); err != nil {
			return err
		}
	}
	a.generation = generation
	return nil
}

// keepModel notes that the clusters have changed.
func (a *adder) keepModel() error {
	a.generation++
	return setMeta(a.ctx, a.tx, "generation", fmt.Sprint(a.generation))
}
