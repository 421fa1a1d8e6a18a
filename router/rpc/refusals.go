// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"errors"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster/remote"
)

// missingParts has the errors of members without a part in an answer.
type missingParts struct {
	answered int
	silent   []router.MissingMember // members whose parts are missing, including members that reject the call
	others   []router.MissingMember // members that are lost or lack the requested item
	refused  []error                // errors of members that reject the call
	nothing  error                  // error of the first member that lacks the requested item
}

func missingPartsOf[V any](parts []router.Part[V]) (l missingParts) {
	for _, p := range parts {
		switch {
		case p.Err == nil:
			l.answered++
		case errors.Is(p.Err, server.ErrLost):
			l.others = append(l.others, router.MissingMember{Member: p.Member, Reason: p.Err.Error()})
		case notHere(p.Err):
			l.others = append(l.others, router.MissingMember{Member: p.Member, Reason: said(p.Err)})
			if l.nothing == nil {
				l.nothing = p.Err
			}
		default:
			l.silent = append(l.silent, router.MissingMember{Member: p.Member, Reason: said(p.Err)})
			if errors.As(p.Err, new(*hrpc.RemoteError)) && !errors.Is(p.Err, creel.ErrUnavailable) {
				l.refused = append(l.refused, p.Err)
			}
		}
	}
	return l
}

// without returns the error for an answer with these parts, nil if they may be returned.
func without[V any](h *Handler, method string, parts []router.Part[V]) error {
	l := missingPartsOf(parts)
	whole := len(l.silent) == 0 || h.server.GivesParts()
	switch {
	case l.answered > 0 && whole:
		for _, p := range parts {
			if errors.Is(p.Err, remote.ErrNotInRelease) {
				h.server.LeftOut(method, p.Member, p.Err) // messages cannot show this
			}
		}
		return nil
	case l.answered == 0 && len(l.refused) > 0 && alike(l.refused) && (l.nothing == nil || whole):
		return l.refused[0]
	case l.answered == 0 && l.nothing != nil && len(l.silent) == 0:
		return l.nothing
	case l.answered > 0 || len(l.refused) > 0:
		return &creel.Error{
			Kind: creel.ErrIncomplete,
			What: method + " has no answer of every subcluster",
			Why:  "missing: " + router.MissingText(l.silent),
			Try:  "try again later, or grant permission there if it rejects the call; yarn.router.interceptor.allow-partial-result.enable=true returns partial answers",
		}
	}
	return missingError(method, router.MissingText(append(l.silent, l.others...)))
}

// notHere reports whether a rejection means that a member lacks the requested item, so that its part is empty.
func notHere(err error) bool {
	for _, kind := range [...]error{
		creel.ErrQueueNotFound, creel.ErrApplicationNotFound, creel.ErrAttemptNotFound, creel.ErrContainerNotFound,
		remote.ErrNotInRelease, // it was not asked
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	var refused *hrpc.RemoteError
	return errors.As(err, &refused) && refused.Class == hrpc.ClassNoSuchMethod
}

// alike reports whether all rejections have the same class, which a single ResourceManager would return too.
func alike(refused []error) bool {
	class := func(err error) string {
		var answered *hrpc.RemoteError
		if errors.As(err, &answered) {
			return answered.Class
		}
		return ""
	}
	for _, err := range refused[1:] {
		if class(err) != class(refused[0]) {
			return false
		}
	}
	return true
}

// said returns the reason why a member has no part; for a rejection it is the member's text.
func said(err error) string {
	var refused *hrpc.RemoteError
	switch {
	case errors.As(err, &refused):
		return "it refuses: " + remote.Sentence(refused.Message)
	case errors.Is(err, creel.ErrUnavailable), errors.As(err, new(*creel.Error)):
		return err.Error()
	}
	return "its answer cannot be read"
}
