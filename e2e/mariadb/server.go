// SPDX-License-Identifier: Apache-2.0

package mariadb

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/creelrm/creel/e2e/process"
)

// User and Password are a login that has all rights.
const (
	User     = "creel"
	Password = "word-of-the-store"
)

// Server is a running server.
type Server struct {
	*process.Process
	Address string
	command process.Command
}

// scripts are the files of the package that make the server's own tables.
var scripts = []string{"mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql"}

// Start starts a server with an empty directory of its own, and with further options. It ends with the test.
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "creel-mariadb-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	data := filepath.Join(dir, "data")
	must(t, os.Mkdir(data, 0o700))
	address := process.FreeAddress(t, "127.0.0.1")
	_, port, _ := strings.Cut(address, ":")
	program := []string{
		"mariadbd", "--no-defaults", "--datadir=" + data, "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=8M",
	}
	if os.Getuid() == 0 {
		program = append(program, "--user=root")
	}
	text := "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n"
	for _, name := range scripts {
		script, err := os.ReadFile(filepath.Join("/usr/share/mysql", name))
		must(t, err)
		text += string(script)
	}
	text += fmt.Sprintf("FLUSH PRIVILEGES;\nCREATE USER '%s'@'%%' IDENTIFIED BY '%s';\nGRANT ALL ON *.* TO '%s'@'%%';\n",
		User, Password, User)
	ctx, cancel := context.WithTimeout(context.Background(), process.Guard)
	defer cancel()
	_, all, code := process.Run(ctx, t, process.Command{
		Name: "bootstrap", Dir: filepath.Join(dir, "bootstrap"), Stdin: strings.NewReader(text),
		Args: append(program[:len(program):len(program)], "--bootstrap"),
	})
	if code != 0 {
		t.Fatalf("mariadbd --bootstrap ended with %d:\n%s", code, all)
	}
	s := &Server{Address: address, command: process.Command{
		Name: "mariadbd", Dir: filepath.Join(dir, "server"), Args: append(program, "--bind-address=127.0.0.1",
			"--port="+port, "--socket="+filepath.Join(dir, "socket"), "--pid-file="+filepath.Join(dir, "pid")),
	}}
	s.command.Args = append(s.command.Args, options...)
	s.Process = process.Spawn(t, s.command)
	t.Cleanup(func() { s.End(t) })
	s.WaitLine(t, "ready for connections")
	return s
}

// Restart starts the server again, after its end.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if !s.Ended() {
		s.Stop()
	}
	s.Process = process.Spawn(t, s.command)
	s.WaitLine(t, "ready for connections")
}

var databases atomic.Int64

// Database creates a database, and returns its name and a plain client in it, as another program's.
func (s *Server) Database(t testing.TB) (string, *sql.DB) {
	t.Helper()
	name := fmt.Sprint("store", databases.Add(1))
	admin := s.client(t, "")
	Exec(t, admin, "CREATE DATABASE "+name)
	return name, s.client(t, name)
}

func (s *Server) client(t testing.TB, database string) *sql.DB {
	t.Helper()
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.Passwd, c.DBName = "tcp", s.Address, User, Password, database
	connector, err := mysql.NewConnector(c)
	must(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

// Exec runs statements.
func Exec(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
