// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
)

// Hadoop writes audit lines in the format of Hadoop's RMAuditLogger, with tabs, in the layout of its log4j.properties.
// It passes all other lines to the next handler:
//
//	2026-11-24 10:00:00,000 INFO resourcemanager.RMAuditLogger: USER=ann	IP=10.0.0.7	OPERATION=…
//
// Hadoop uses other names for operations and targets ("Submit Application Request", "ClientRMService"). This format
// retains creel's names, with the id of a target application or container in APPID or CONTAINERID. Attributes without a
// key in Hadoop, such as AUTH, follow after all of Hadoop's keys, so that programs that read up to those find them.
type Hadoop struct {
	slog.Handler
	Out    io.Writer // receives whole lines from many goroutines
	Logger string    // "resourcemanager.RMAuditLogger", or "router.RouterAuditLogger"
}

// NewHadoop returns a handler that precedes next.
func NewHadoop(next slog.Handler, out io.Writer, logger string) *Hadoop {
	return &Hadoop{next, out, logger}
}

// Handle implements slog.Handler.
func (h *Hadoop) Handle(ctx context.Context, r slog.Record) error {
	if r.Message != Message {
		return h.Handler.Handle(ctx, r)
	}
	var l Line
	var theirs, ours []string // after the fixed keys: Hadoop's, then creel's
	r.Attrs(func(a slog.Attr) bool {
		value := a.Value.String()
		switch a.Key {
		case "user":
			l.User = value
		case "from":
			l.From = value
		case "forwarded_for":
			l.ForwardedFor = value
		case "operation":
			l.Operation = value
		case "target":
			l.Target = value
		case "result":
			l.Result = value
		case "error":
			l.Error = value
		case "caller_context":
			theirs = append(theirs, "CALLERCONTEXT="+oneLine(value))
		case "queue":
			theirs = append(theirs, "QUEUENAME="+oneLine(value))
		default:
			ours = append(ours, strings.ToUpper(a.Key)+"="+oneLine(value))
		}
		return true
	})
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s: USER=%s", r.Time.Format("2006-01-02 15:04:05,000"), r.Level, h.Logger, oneLine(l.User))
	for _, kv := range [...]struct{ key, value string }{
		{"IP", address(l)}, {"OPERATION", l.Operation}, {"TARGET", l.Target}, {"RESULT", word(l.Result)},
		{"DESCRIPTION", l.Error},
		{"APPID", idOf(l.Target, "application_")}, {"CONTAINERID", idOf(l.Target, "container_")},
	} {
		if kv.value != "" {
			b.WriteString("\t" + kv.key + "=" + oneLine(kv.value))
		}
	}
	for _, text := range append(theirs, ours...) {
		b.WriteString("\t" + text)
	}
	b.WriteByte('\n')
	_, err := io.WriteString(h.Out, b.String())
	return err
}

// WithAttrs implements slog.Handler.
func (h *Hadoop) WithAttrs(a []slog.Attr) slog.Handler {
	with := *h
	with.Handler = h.Handler.WithAttrs(a)
	return &with
}

// WithGroup implements slog.Handler.
func (h *Hadoop) WithGroup(name string) slog.Handler {
	with := *h
	with.Handler = h.Handler.WithGroup(name)
	return &with
}

// address returns the client's address without its port, as in Hadoop.
func address(l Line) string {
	if l.ForwardedFor != "" {
		return l.ForwardedFor
	}
	if host, _, err := net.SplitHostPort(l.From); err == nil {
		return host
	}
	return l.From
}

// word returns Hadoop's word for a result; Hadoop uses two.
func word(result string) string {
	if result == "" || result == Success {
		return "SUCCESS"
	}
	return "FAILURE"
}

// idOf returns the id of a kind in a target, "" if there is none.
func idOf(target, kind string) string {
	_, id, found := strings.Cut(target, kind)
	if !found {
		return ""
	}
	end := strings.IndexFunc(id, func(r rune) bool { return (r < '0' || r > '9') && r != '_' && r != 'e' })
	if end < 0 {
		end = len(id)
	}
	return kind + id[:end]
}

// oneLine prevents a text from starting a second line, or a second key.
func oneLine(text string) string {
	return strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", " ").Replace(text)
}
