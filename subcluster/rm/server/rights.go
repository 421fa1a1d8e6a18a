// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/authorizer"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
)

// Outside is an outside authoriser, which decides about rights at queues.
type Outside struct {
	*authorizer.Authorizer
	Lists Lists // when access lists of queues count beside it
}

// Lists selects when access lists of queues count beside an outside authoriser.
type Lists string

// The choices, in the words of creel.authorizer.access-lists.
const (
	ListsNever    Lists = "never"
	ListsWhenAway Lists = "when-away" // while the authoriser does not answer
	ListsAlso     Lists = "also"      // a list may allow a request that the authoriser denies
)

// A call whose rights are not known yet runs again after the authoriser was asked: the machine's owner must not wait.
// The limits are for calls that list applications of many queues; what is then unknown is denied.
const (
	mostRounds    = 3
	mostQuestions = 1000 // of one round
)

// rights answers the machine's questions about queues by the authoriser's stored answers. It belongs to the machine's
// owner.
type rights struct {
	outside *Outside
	open    map[authorizer.Question]struct{} // in this call, without an answer
	why     string                           // of the last denial in this call
}

// begin starts a call.
func (r *rights) begin() {
	if r.outside != nil {
		clear(r.open)
		r.why = ""
	}
}

// end returns the questions of the call without an answer, and the reason for its last denial.
func (r *rights) end() (open []authorizer.Question, why string) {
	for q := range r.open {
		open = append(open, q)
	}
	return open, r.why
}

// decide answers one question of the machine. An unknown right is denied.
func (r *rights) decide(right *rm.Right) bool {
	if right.Listed && r.outside.Lists == ListsAlso {
		return true
	}
	q := authorizer.Question{User: right.User, Queue: string(right.Queue), Action: authorizer.Submit}
	if right.Administer {
		q.Action = authorizer.Administer
	}
	answer, known := r.outside.Known(q)
	switch {
	case !known:
		if r.why = "the outside authoriser was not asked yet"; len(r.open) < mostQuestions {
			r.open[q] = struct{}{}
		}
		return false
	case answer.Failed:
		if r.outside.Lists == ListsWhenAway {
			return right.Listed
		}
		r.why = "the outside authoriser does not answer: " + answer.Why
		return false
	case !answer.Allowed:
		r.why = "the outside authoriser denies it"
		if answer.Why != "" {
			r.why += ": " + answer.Why
		}
	}
	return answer.Allowed
}

// explained adds the authoriser's reason to the error of a call that was denied for it.
func explained(err error, why string) error {
	var e *creel.Error
	if why == "" || !errors.Is(err, creel.ErrNotPermitted) || !errors.As(err, &e) || e.Why != "" {
		return err
	}
	with := *e
	with.Why = why
	var thrown *yarnrpc.Exception
	if errors.As(err, &thrown) {
		return yarnrpc.Throw(thrown.Class, &with)
	}
	return &with
}
