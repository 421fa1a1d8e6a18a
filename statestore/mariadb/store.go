// SPDX-License-Identifier: Apache-2.0

package mariadb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/nodes"
)

// Config of a store. Address, Database and User are required.
type Config struct {
	Address  string // host:port
	Database string
	User     string
	Password string
	TLS      TLS
	Validate statestore.Validate
	MaxWait  time.Duration // of a call without a deadline, 10 s

	// HadoopLease is the lease of members that Hadoop's ResourceManagers registered; 15 min, three of their heartbeats.
	HadoopLease time.Duration
	// HadoopHTTPS: their web ports use TLS, which Hadoop's records do not tell.
	HadoopHTTPS bool
	// Confirm makes a new store wait for the homes that ResourceManagers report (Reopen) before its first claim.
	Confirm bool
	// Replacing waits while a procedure of Hadoop's replaces a policy, 1 s. Tests replace it.
	Replacing func(context.Context)
	// Connections is the maximum number of connections to the server, 16.
	Connections int
}

// TLS is how connections are encrypted.
type TLS string

// The kinds of encryption.
const (
	TLSOff        TLS = ""
	TLSVerified   TLS = "true"        // by the authorities that the operating system trusts
	TLSUnverified TLS = "skip-verify" // a server in the middle is not noticed
)

// These bound the calls. Locks end with the connection, so the server ends an idle one soon.
const (
	connectWait = 3 * time.Second
	lockWait    = "3" // s
	answerWait  = 5 * time.Second
	idleAtMost  = "10" // s, by the server
	keptIdle    = 5 * time.Second
)

// maxChange is the size of the largest transaction, and maxPacket the least max_allowed_packet of the server: binary
// data may need twice its size.
const (
	maxChange = 7 << 20
	maxPacket = 16 << 20
)

// Open makes a store, which connects at its first call.
func Open(cfg Config) (*nodes.Store, error) {
	if cfg.Replacing == nil {
		cfg.Replacing = replaced
	}
	c := mysql.NewConfig()
	c.Net, c.Addr, c.DBName, c.User, c.Passwd = "tcp", cfg.Address, cfg.Database, cfg.User, cfg.Password
	c.TLSConfig = string(cfg.TLS)
	c.InterpolateParams = true // one exchange for a statement instead of three
	c.RejectReadOnly = true
	c.MaxAllowedPacket = maxPacket
	c.Timeout, c.ReadTimeout, c.WriteTimeout = connectWait, answerWait, answerWait
	c.Logger = &mysql.NopLogger{} // its errors are returned too
	c.Params = map[string]string{
		"innodb_lock_wait_timeout": lockWait, "wait_timeout": idleAtMost,
		"sql_mode": "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	most := cmp.Or(cfg.Connections, 16)
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	db.SetConnMaxIdleTime(keptIdle)
	return nodes.Open(nodes.Config{
		Tree: &tree{db: db, user: cfg.User, database: cfg.Database, polls: newPolls()}, System: "MariaDB",
		MaxChange: maxChange, Validate: cfg.Validate, MaxWait: cfg.MaxWait, HadoopLease: cfg.HadoopLease,
		HadoopHTTPS: cfg.HadoopHTTPS, Replacing: cfg.Replacing, Confirm: cfg.Confirm,
	}), nil
}

// replaced waits longer than a procedure of Hadoop's needs between its two statements.
func replaced(ctx context.Context) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
}

// isCode reports an error of the server by its number.
func isCode(err error, codes ...uint16) bool {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return false
	}
	for _, c := range codes {
		if e.Number == c {
			return true
		}
	}
	return false
}
