// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
)

// Caller is who asks, as far as anyone can know.
type Caller struct {
	User     string
	RealUser string // who acts for User, or ""
	Remote   netip.AddrPort
	Request  string // request id for the audit line, or ""
	// Forwarded is the client's address by the word of a router, at Remote; or none.
	Forwarded netip.Addr
}

// Audit writes the line that every change leaves: who, from where, what, to
// what, and how it went.
func (s *Server) Audit(who Caller, operation, target string, err error) {
	level, attrs := slog.LevelInfo, make([]slog.Attr, 0, 8)
	attrs = append(
		attrs,
		slog.String("user", who.User),
		slog.String("ip", who.Remote.Addr().String()),
		slog.String("operation", operation),
	)
	if who.RealUser != "" {
		attrs = append(attrs, slog.String("realUser", who.RealUser))
	}
	if who.Forwarded.IsValid() {
		attrs = append(attrs, slog.String("forwarded_for", who.Forwarded.String()))
	}
	if target != "" {
		attrs = append(attrs, slog.String("target", target))
	}
	if who.Request != "" {
		attrs = append(attrs, slog.String("request", who.Request))
	}
	if err == nil {
		attrs = append(attrs, slog.String("result", "SUCCESS"))
	} else {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("result", "FAILURE"), slog.String("error", err.Error()))
	}
	s.log.LogAttrs(context.Background(), level, "audit", attrs...)
}

// denied returns a refusal in the form YARN gives it: a YarnException whose text
// begins with the class of its cause.
func denied(format string, args ...any) error {
	e := hrpc.Errorf(hrpc.ClassAccessControl, format, args...)
	return yarnrpc.Throw(yarnrpc.ClassYarn, &creel.Error{Kind: creel.ErrNotPermitted, What: e.Error()})
}

// auditVictim writes the line that every container under notice leaves, and what
// became of it: whose it is, by which rule, for whom.
func (s *Server) auditVictim(p rm.Preempted) {
	s.log.LogAttrs(context.Background(), slog.LevelInfo, "audit",
		slog.String("user", p.User),
		slog.String("operation", "Preempt Container"),
		slog.String("target", p.Container.String()),
		slog.String("what", string(p.What)),
		slog.String("rule", p.Rule.String()),
		slog.String("why", p.Why),
		slog.String("queue", string(p.Queue)),
		slog.String("for", p.For.String()),
		slog.String("for_queue", string(p.ForQueue)),
		slog.String("node", p.Node.String()),
		slog.String("resource", p.Resource.String()),
		slog.Duration("age", p.Age),
		slog.Time("by", p.By),
		slog.Bool("am", p.AM),
		slog.String("result", "SUCCESS"),
	)
}
