// SPDX-License-Identifier: Apache-2.0

package mariadb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/nodes"
)

// tree is the tables of a database as a nodes.Tree.
type tree struct {
	db             *sql.DB
	user, database string
	polls          *polls
}

var _ nodes.Tree = (*tree)(nil)

const (
	own  = "/creel/"
	meta = "/creel/meta"
)

// longestPath is the size of the column, in bytes.
const longestPath = 1500

// Numbers of the server's errors.
const (
	duplicate      = 1062
	tooManyClients = 1040
	shuttingDown   = 1053
	lockTimeout    = 1205
	deadlock       = 1213
	changedSince   = 1020 // a row that is newer than the transaction's snapshot
	interrupted    = 1317
	killed         = 1927
	notPrepared    = 1047 // a Galera server without a majority
	readOnly       = 1290
	tooLong        = 1406
	noDatabase     = 1049
)

// refusals are the errors about the user's rights.
var refusals = []uint16{1044, 1045, 1130, 1142, 1143, 1227, 1370, 1698, noDatabase}

// passing are the errors that a repetition may not meet again.
var passing = []uint16{
	tooManyClients, shuttingDown, lockTimeout, deadlock, changedSince, interrupted, killed, notPrepared, readOnly,
}

// translated is an error of the server as nodes has it.
func (t *tree) translated(err error) error {
	switch {
	case err == nil:
		return nil
	case isCode(err, deadlock, lockTimeout, changedSince):
		return fmt.Errorf("%w: %w", nodes.ErrConflict, err)
	case isCode(err, refusals...):
		return &creel.Error{
			Kind: creel.ErrNotPermitted,
			What: "MariaDB refuses the user " + t.user + " in the database " + t.database,
			Why:  err.Error(), // the server's text has no password
			Try:  "create the database, and grant the user ALL PRIVILEGES in it; or correct user and password",
		}
	}
	return err
}

// Final implements nodes.Tree.
func (t *tree) Final(err error) bool {
	var e *mysql.MySQLError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, sql.ErrConnDone):
		return true
	case errors.Is(err, nodes.ErrNoNode), errors.Is(err, creel.ErrNotPermitted),
		errors.Is(err, creel.ErrInvalidRequest):
		return true
	}
	return errors.As(err, &e) && !slices.Contains(passing, e.Number)
}

// querier is the database, or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// lock is the end of a statement that reads a row.
type lock string

const (
	unlocked  lock = ""
	shared    lock = " LOCK IN SHARE MODE"
	exclusive lock = " FOR UPDATE"
)

// Get implements nodes.Tree.
func (t *tree) Get(ctx context.Context, path string) ([]byte, *nodes.Stat, error) {
	data, stat, err := t.read(ctx, t.db, path, unlocked)
	return data, stat, t.translated(err)
}

func (t *tree) read(ctx context.Context, q querier, path string, l lock) ([]byte, *nodes.Stat, error) {
	if k, id := kindOf(path); k != nil {
		if id == "" {
			return nil, &nodes.Stat{}, nil // the table
		}
		return k.read(ctx, q, id, l)
	}
	var data []byte
	var created, mtime int64
	stat := &nodes.Stat{}
	children := "(SELECT COUNT(*) FROM creel_nodes c WHERE c.parent = n.path)"
	if l != unlocked {
		children = "0" // a lock of the children is not needed
	}
	err := q.QueryRowContext(ctx, "SELECT data, version, created, mtime, "+children+
		" FROM creel_nodes n WHERE path = ?"+string(l), []byte(path),
	).Scan(&data, &stat.Version, &created, &mtime, &stat.Children)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil, nodes.ErrNoNode
	}
	if err != nil {
		return nil, nil, err
	}
	stat.Created, stat.Changed, stat.Ctime, stat.Mtime = created, stat.Version, micro(created), micro(mtime)
	if path == meta {
		return data, stat, t.madeIn(ctx, q, stat)
	}
	return data, stat, nil
}

// madeIn replaces the creation of the store's identity by that of its table. A restored dump has another one.
func (t *tree) madeIn(ctx context.Context, q querier, stat *nodes.Stat) error {
	const query = "SELECT CAST(UNIX_TIMESTAMP(CREATE_TIME) AS SIGNED) FROM information_schema.TABLES" +
		" WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'creel_nodes'"
	if err := q.QueryRowContext(ctx, query).Scan(&stat.Created); err != nil {
		return err
	}
	stat.Version ^= stat.Created << 16 // so a transaction that read another copy conflicts
	return nil
}

func micro(us int64) time.Time { return time.UnixMicro(us).UTC() }

// Children implements nodes.Tree.
func (t *tree) Children(ctx context.Context, path string) ([]string, error) {
	query, args := "SELECT path FROM creel_nodes WHERE parent = ?", []any{[]byte(path)}
	k, _ := kindOf(path)
	if k != nil {
		query, args = "SELECT "+k.key+" FROM "+k.table, nil
	}
	rows, err := t.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, t.translated(err)
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, t.translated(err)
		}
		if k == nil {
			name = name[len(path)+1:]
		}
		names = append(names, name)
	}
	return names, t.translated(rows.Err())
}

// Apply implements nodes.Tree. Rows are locked in the order of their paths.
func (t *tree) Apply(ctx context.Context, ops []nodes.Op) (written time.Time, err error) {
	ops = slices.Clone(ops)
	slices.SortFunc(ops, func(a, b nodes.Op) int { return strings.Compare(a.Path, b.Path) })
	tx, err := t.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		return time.Time{}, t.translated(err)
	}
	us, err := now(ctx, tx)
	for i := 0; i < len(ops) && err == nil; i++ {
		err = t.apply(ctx, tx, us, &ops[i])
	}
	if err != nil {
		_ = tx.Rollback() // its connection is closed if this fails
		return time.Time{}, t.translated(err)
	}
	return micro(us), t.translated(tx.Commit())
}

// now is the server's time, in microseconds.
func now(ctx context.Context, q querier) (us int64, err error) {
	err = q.QueryRowContext(ctx, "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)").Scan(&us)
	return us, err
}

// apply carries out one operation.
func (t *tree) apply(ctx context.Context, tx querier, us int64, op *nodes.Op) error {
	k, id := kindOf(op.Path)
	if op.Kind == nodes.OpCheck || op.Kind == nodes.OpMissing || k != nil || op.Path == meta {
		if err := t.compare(ctx, tx, op); err != nil {
			return err
		}
	}
	if k != nil {
		return k.apply(ctx, tx, us, id, op)
	}
	switch op.Kind {
	case nodes.OpCreate:
		if len(op.Path) > longestPath {
			return &creel.Error{
				Kind: creel.ErrInvalidRequest, What: "name too long for MariaDB",
				Why: fmt.Sprintf("the record's path has %d bytes, and creel_nodes has room for %d", len(op.Path), longestPath),
				Try: "shorten the name, or use a store on Redis",
			}
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO creel_nodes (path, parent, data, version, created, mtime)"+
			" VALUES (?, ?, ?, ?, ?, ?)", []byte(op.Path), []byte(parent(op.Path)), bytesOf(op.Data), us, us, us)
		if isCode(err, duplicate) {
			return fmt.Errorf("%w: %s", nodes.ErrConflict, op.Path)
		}
		return err
	case nodes.OpSet:
		return changed(tx.ExecContext(ctx, "UPDATE creel_nodes SET data = ?, version = version + 1, mtime = ?"+
			" WHERE path = ?"+whereVersion(op), bytesOf(op.Data), us, []byte(op.Path)))
	case nodes.OpDelete:
		return changed(tx.ExecContext(ctx, "DELETE FROM creel_nodes WHERE path = ?"+whereVersion(op), []byte(op.Path)))
	}
	return nil
}

// compare locks a row, and compares it with the operation's expectation.
func (t *tree) compare(ctx context.Context, tx querier, op *nodes.Op) error {
	l := exclusive
	if op.Kind == nodes.OpCheck || op.Kind == nodes.OpMissing {
		l = shared
	}
	missing := op.Kind == nodes.OpMissing
	if op.Kind == nodes.OpCreate {
		return nil // its key is checked
	}
	_, stat, err := t.read(ctx, tx, op.Path, l)
	switch {
	case errors.Is(err, nodes.ErrNoNode) && missing:
		return nil
	case errors.Is(err, nodes.ErrNoNode):
		return fmt.Errorf("%w: %s", nodes.ErrConflict, op.Path)
	case err != nil:
		return err
	case missing, op.Version != nodes.AnyVersion && op.Version != stat.Version:
		return fmt.Errorf("%w: %s", nodes.ErrConflict, op.Path)
	}
	return nil
}

// whereVersion is the condition of a change. That of the identity was compared.
func whereVersion(op *nodes.Op) string {
	if op.Version == nodes.AnyVersion || op.Path == meta {
		return ""
	}
	return fmt.Sprintf(" AND version = %d", op.Version)
}

// changed returns a conflict for a statement that found no row.
func changed(r sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := r.RowsAffected()
	if err == nil && n == 0 {
		err = nodes.ErrConflict
	}
	return err
}

func parent(path string) string { return path[:strings.LastIndexByte(path, '/')] }

// bytesOf is data that is never NULL.
func bytesOf(data []byte) []byte { return append([]byte{}, data...) }

// Sync implements nodes.Tree. All reads are of the newest commit.
func (t *tree) Sync(context.Context) error { return nil }

// Time implements nodes.Tree.
func (t *tree) Time(ctx context.Context) (time.Time, error) {
	us, err := now(ctx, t.db)
	return micro(us), t.translated(err)
}

// Health makes a write, and reports settings by which the server loses acknowledged changes.
func (t *tree) Health(ctx context.Context) (findings []statestore.Finding, err error) {
	clock := nodes.Op{Kind: nodes.OpSet, Path: nodes.ClockPath(""), Version: nodes.AnyVersion}
	if _, err := t.Apply(ctx, []nodes.Op{clock}); err != nil {
		return nil, err
	}
	var flush int
	if err := t.db.QueryRowContext(ctx, "SELECT @@GLOBAL.innodb_flush_log_at_trx_commit").Scan(&flush); err != nil {
		return nil, t.translated(err)
	}
	if flush != 1 {
		findings = append(findings, statestore.Finding{
			Name: statestore.LosesWrites, What: fmt.Sprintf("innodb_flush_log_at_trx_commit is %d: "+
				"a crash of the server loses homes that were acknowledged", flush),
			Try: "set innodb_flush_log_at_trx_commit=1 at the server",
		})
	}
	return findings, nil
}

// Close ends all connections.
func (t *tree) Close() {
	t.polls.close()
	_ = t.db.Close()
}
