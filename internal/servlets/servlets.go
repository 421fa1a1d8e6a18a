// SPDX-License-Identifier: Apache-2.0

// Package servlets serves the standard pages of Hadoop's daemons on a web port: /conf, /jmx, /stacks, /logLevel,
// /logs and /isActive. Routers and ResourceManagers use it.
//
// Hadoop's rule decides access: every user may read the pages, unless hadoop.security.instrumentation.requires.admin
// restricts them to administrators. Only administrators may change the log level
// and ask where the log is.
package servlets

import (
	"compress/gzip"
	"fmt"
	"html"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/creelrm/creel/internal/httpguard"
	"github.com/creelrm/creel/internal/query"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// Config describes the content of the pages, and their readers.
type Config struct {
	Service string    // the daemon in the names of its beans: ResourceManager, Router
	Started time.Time // reported as the age of the process
	// Properties are the settings in force, secrets masked; nil: /conf is empty.
	Properties func() []Property
	// Beans returns the daemon's own beans, in addition to those of its process; nil: none. The answer to an error is
	// 503.
	Beans func(r *http.Request) ([]Bean, error)
	// Ports are the RPC ports with beans; nil: none.
	Ports *Ports
	// Administers reports whether a user is an administrator; nil: every user is one.
	Administers func(user string) bool
	// AdminsOnly restricts /conf, /jmx and /stacks to administrators.
	AdminsOnly bool
	// Level and SetLevel read and set the level of the process's log, by the names debug, info, warn and error; nil:
	// there is no /logLevel.
	Level    func() string
	SetLevel func(name string) error
	// Log describes where the daemon's log is, for /logs; nil: there is no /logs.
	Log func() string
}

// Mount adds the pages to a router.
func Mount(r chi.Router, c Config) {
	packed := r.With(middleware.Compress(gzip.BestSpeed, "text/xml", "application/json", "text/plain"))
	page := func(path string, adminsOnly bool, serve http.HandlerFunc) {
		packed.Handle(path, httpguard.Reading(c.guarded(adminsOnly, serve)))
	}
	page("/conf", c.AdminsOnly, c.conf)
	page("/jmx", c.AdminsOnly, c.jmx)
	page("/stacks", c.AdminsOnly, stacks)
	if c.Level != nil {
		page("/logLevel", true, c.logLevel)
	}
	if c.Log != nil {
		page("/logs", true, c.logs)
		page("/logs/*", true, c.logs)
	}
	page("/isActive", false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain;charset=utf-8")
		io.WriteString(w, "I am Active!") // an error here means that the client disconnected
	})
}

// guarded restricts a page to administrators if adminsOnly is set.
func (c *Config) guarded(adminsOnly bool, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("X-Frame-Options", "SAMEORIGIN")
		if adminsOnly && c.Administers != nil {
			user := query.First(r.URL.RawQuery, "user.name")
			if !c.Administers(user) {
				why := "Unauthenticated users are not authorized to access this page."
				if user != "" {
					why = "User " + user + " is unauthorized to access this page."
				}
				http.Error(w, why, http.StatusForbidden)
				return
			}
		}
		serve(w, r)
	}
}

// logs describes where the log is. Hadoop's daemons list the files of their log directory here; this one has no such
// files.
func (c *Config) logs(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain;charset=utf-8")
	w.WriteHeader(http.StatusNotFound)
	io.WriteString(w, c.Log()+" There are no log files to list here.\n") // fails only if the client disconnected
}

// marker precedes the lines of the answer that `yarn daemonlog` prints.
const marker = "<!-- OUTPUT -->"

// levels are Hadoop's names of levels, and creel's.
var levels = map[string]string{
	"ALL": "debug", "TRACE": "debug", "DEBUG": "debug",
	"INFO": "info", "WARN": "warn", "ERROR": "error", "FATAL": "error",
}

// logLevel reports and changes the log level. The whole process has one level, for every logger name.
func (c *Config) logLevel(w http.ResponseWriter, r *http.Request) {
	name, asked := query.First(r.URL.RawQuery, "log"), query.First(r.URL.RawQuery, "level")
	if asked != "" && httpguard.FromOtherSite(r) { // yarn daemonlog sets levels by GET
		http.Error(w, httpguard.OtherSite, http.StatusForbidden)
		return
	}
	var b strings.Builder
	b.WriteString(`<!DOCTYPE html>
<html><head><title>Log Level</title></head><body><h1>Log Level</h1>
<form>Log: <input type="text" size="50" name="log"> <input type="submit" value="Get Log Level"></form>
<form>Log: <input type="text" size="50" name="log"> Level: <input type="text" name="level">
<input type="submit" value="Set Log Level"></form>
`)
	line := func(format string, args ...any) {
		for i := range args {
			args[i] = html.EscapeString(fmt.Sprint(args[i]))
		}
		fmt.Fprintf(&b, marker+format+"<br />\n", args...)
	}
	if name != "" {
		b.WriteString("<br /><hr /><h3>Results</h3>\n")
		line("Submitted Class Name: <b>%s</b>", name)
		line("Log Class: <b>%s</b>", "log/slog, one level for the whole process")
		if asked != "" {
			line("Submitted Level: <b>%s</b>", asked)
			ours, known := levels[strings.ToUpper(asked)]
			switch {
			case !known:
				line("Bad Level : <b>%s</b>", asked)
			default:
				if err := c.SetLevel(ours); err != nil {
					line("Bad Level : <b>%s</b>", err)
				} else {
					line("Setting Level to %s ...", strings.ToUpper(ours))
				}
			}
		}
		line("Effective Level: <b>%s</b>", strings.ToUpper(c.Level()))
	}
	b.WriteString("</body></html>\n")
	w.Header().Set("Content-Type", "text/html;charset=utf-8")
	io.WriteString(w, b.String()) // an error here means that the client disconnected
}
