// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster/remote"
)

// ReportCall is a caller's question for the report of an application, in the caller's protocol. R is a report as a
// member sent it.
type ReportCall[R any] interface {
	// AtHome asks the application's home, as the caller asked.
	AtHome(ctx context.Context, home *remote.Member) (R, error)
	// UAM asks a member for the report of a UAM, by the application id that the UAM has there.
	UAM(ctx context.Context, m *remote.Member, id creel.ApplicationID) (R, error)
	// Absent reports whether an error of UAM means that the member has no application of that id.
	Absent(err error) bool
	// Facts reads home's report.
	Facts(R) ReportFacts
	// IsUAM reports whether a report is of a UAM (creel.IsUAM).
	IsUAM(R) bool
	// Join merges home's report of an application with those of its UAMs, which may be none. without are the UAMs whose
	// members did not answer.
	Join(ctx context.Context, own router.Part[R], uams, without []router.Part[R]) R
	// Remembered returns the bytes of a joined report to keep for the time when home does not answer; nil for none.
	Remembered(R) []byte
	// Old returns an earlier report from its bytes, marked with its age; false if the bytes cannot be read.
	Old(OldReport) (R, bool)
}

// ReportFacts are the fields of a report that decide whether UAMs can add to it.
type ReportFacts struct {
	State creel.ApplicationState
	Logs  creel.LogAggregationStatus
}

// asksUAMs reports whether UAMs must be asked: the application is running, or it has ended and nodes aggregate logs.
func (f ReportFacts) asksUAMs() bool {
	return f.State == creel.AppRunning || f.State.Ended() && f.Logs > creel.LogDisabled
}

// OldReport is the last report of an application that its user got from this router.
type OldReport struct {
	Bytes []byte
	Home  creel.SubclusterID // which does not answer; "" if unknown
	Age   time.Duration
	Text  string // precedes the diagnostics
}

// Report returns an application's report: home's, merged with those of its UAMs, as in lists. While home does not
// answer, it is the last report that the user got from this router.
func Report[R any, C ReportCall[R]](
	ctx context.Context, s *Server, app creel.ApplicationID, user string, form Form, call C,
) (R, error) {
	own, home, err := AtHome(ctx, s, app, call.AtHome)
	if err == nil {
		part := router.Part[R]{Member: home.ID, Value: own}
		uams, without := uamReports(ctx, s, app, part, call)
		whole := call.Join(ctx, part, uams, without)
		if b := call.Remembered(whole); b != nil {
			s.saw(app, user, form, b)
		}
		return whole, nil
	}
	if errors.Is(err, creel.ErrUnavailable) {
		if last, age, ok := s.seen(app, user, form); ok {
			old := OldReport{Bytes: last, Age: age, Text: AsOf(age, err)}
			if home != nil {
				old.Home = home.ID
			} else {
				old.Home, _ = s.HomeSeen(app)
			}
			if r, ok := call.Old(old); ok {
				return r, nil
			}
		}
	}
	return own, err
}

// uamReports returns the reports of an application's UAMs if they may add to home's, and the parts of members that did
// not answer.
func uamReports[R any, C ReportCall[R]](
	ctx context.Context, s *Server, app creel.ApplicationID, own router.Part[R], call C,
) (uams, without []router.Part[R]) {
	facts := call.Facts(own.Value)
	if !facts.asksUAMs() {
		return nil, nil
	}
	of := application{ID: app, Home: own.Member, Ended: facts.State.Ended()}
	for _, p := range askUAMs(ctx, s, of, call.UAM, call.Absent) {
		switch {
		case p.Err != nil:
			without = append(without, p)
		case of.Ended && !call.IsUAM(p.Value): // another application with the same id
		default:
			uams = append(uams, p)
		}
	}
	return uams, without
}
