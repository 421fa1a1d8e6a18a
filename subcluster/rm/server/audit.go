// SPDX-License-Identifier: Apache-2.0

package server

import (
	"log/slog"
	"net/netip"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/audit"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
)

// Caller is the caller of an operation, as far as it is known.
type Caller struct {
	User     string
	RealUser string // the user that acts for User, or ""
	AM       bool   // User is the attempt of an AM
	Auth     string // how the caller, or RealUser, logged in, in the words of audit lines, or ""
	Remote   netip.AddrPort
	Request  string // the client's id for the request, or ""
	Context  string // the client's caller context, or ""
	Signed   []byte // the signature of Context, or nil
	Trace    string // the request's trace, or ""
	// Forwarded is the client's address as reported by the router at Remote, if any.
	Forwarded netip.Addr
}

// Audit writes the audit line of a change: user, login method, address, operation, target, and result.
func (s *Server) Audit(who Caller, operation, target string, err error) {
	audited(s.log, who, operation, target, err)
}

func audited(log *slog.Logger, who Caller, operation, target string, err error) {
	l := audit.Line{
		User: who.User, RealUser: who.RealUser, Operation: operation, Target: target,
		Auth: who.Auth, Request: who.Request, Context: who.Context, Trace: who.Trace,
	}
	if who.Remote.IsValid() {
		l.From = who.Remote.String()
	}
	if who.Forwarded.IsValid() {
		l.ForwardedFor = who.Forwarded.String()
	}
	l.Result, l.Error = audit.Of(err)
	l.Log(log)
}

// denied returns a denial in YARN's form: a YarnException whose text begins with the class of its cause.
func denied(format string, args ...any) error {
	e := hrpc.Errorf(hrpc.ClassAccessControl, format, args...)
	return yarnrpc.Throw(yarnrpc.ClassYarn, &creel.Error{Kind: creel.ErrNotPermitted, What: e.Error()})
}

// auditVictim writes the audit line of a container under notice, and of its outcome, with its application, the rule
// and the beneficiary.
func (s *Server) auditVictim(p rm.Preempted) {
	l := audit.Line{
		User: p.User, Operation: "Preempt Container", Target: p.Container.String(), Result: audit.Success,
	}
	l.Log(s.log,
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
	)
}
