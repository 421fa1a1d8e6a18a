// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// recorder has the session's record and the progress of its saves. A call that depends on a state of the record waits
// for the generation of that state (isDurable).
type recorder struct {
	Record
	gen     uint64 // generation of the record; rises with each change
	durable uint64 // generation that is durable
	saving  uint64 // generation being saved, 0 for none
	saveAt  time.Time
	removed bool // the record must be removed, or was removed
	// unread is the progress of Completions towards the AM.
	unread delivery
}

// inherits continues from the record of an earlier proxy, or of an earlier attempt. It reports whether the record is
// of this attempt.
func (r *recorder) inherits(from *Record) (same bool) {
	r.UAMs, r.Queue, r.Type, r.Turn = slices.Clone(from.UAMs), from.Queue, from.Type, from.Turn
	if r.User == "" {
		r.User = from.User
	}
	if same = from.Attempt == r.Attempt; same {
		r.Register, r.Answer, r.Ending = from.Register, from.Answer, from.Ending
		r.Terms = from.Terms
	}
	// The record is saved before any use. So another proxy that still runs this attempt fails at its next save.
	r.gen = 1
	return same
}

// changed marks the record as changed and returns its new generation.
func (r *recorder) changed() uint64 {
	r.gen++
	return r.gen
}

// isDurable reports whether a generation is durable.
func (r *recorder) isDurable(gen uint64) bool { return gen <= r.durable }

// isUnsaved reports whether a generation is neither durable nor being saved.
func (r *recorder) isUnsaved(gen uint64) bool { return gen > r.durable && gen != r.saving }

// isClean reports whether the record's last change is durable.
func (r *recorder) isClean() bool { return r.durable == r.gen }

// saveDue returns the time of the next save; false if none is due, or one is under way.
func (r *recorder) saveDue() (time.Time, bool) { return r.saveAt, r.saving == 0 && !r.isClean() }

// save starts a save, and returns its action.
func (r *recorder) save() Save {
	r.saving = r.gen
	if r.removed {
		return Save{Number: r.gen}
	}
	c := r.Record
	c.UAMs = slices.Clone(c.UAMs)
	return Save{Number: r.gen, Record: &c}
}

// saved ends the save of that number.
func (r *recorder) saved(number uint64) {
	if number == r.saving {
		r.durable, r.saving = number, 0
	}
}

// failed ends the save of that number, to be repeated at the time retryAt. It reports whether that save was under
// way.
func (r *recorder) failed(number uint64, retryAt time.Time) bool {
	if number != r.saving {
		return false
	}
	r.saving, r.saveAt = 0, retryAt
	return true
}

// put adds a UAM, or replaces the UAM of its member, and returns the record's new generation.
func (r *recorder) put(u UAM) uint64 {
	uams := slices.Clone(r.UAMs)
	i := slices.IndexFunc(uams, func(t UAM) bool { return t.Member >= u.Member })
	switch {
	case i >= 0 && uams[i].Member == u.Member:
		uams[i] = u
	case i >= 0:
		uams = slices.Insert(uams, i, u)
	default:
		uams = append(uams, u)
	}
	r.UAMs = uams
	return r.changed()
}

// drop removes the UAM of a member.
func (r *recorder) drop(id creel.SubclusterID) {
	if i := slices.IndexFunc(r.UAMs, func(t UAM) bool { return t.Member == id }); i >= 0 {
		r.UAMs = slices.Delete(slices.Clone(r.UAMs), i, i+1)
		r.changed()
	}
}

// end records that only the end of UAMs is left.
func (r *recorder) end() {
	r.Ending = true
	r.changed()
}

// remove marks the record for removal. It reports whether the removal is durable.
func (r *recorder) remove() bool {
	if !r.removed {
		r.removed = true
		r.changed()
	}
	return r.isClean()
}

// registered stores home's answer to the registration. Home reports containers of earlier attempts only once: a later
// proxy reads them from the record until the AM has the answer. It returns the record's new generation.
func (r *recorder) registered(a *yarnpb.RegisterApplicationMasterResponseProto) uint64 {
	r.Queue, r.Answer = creel.QueuePath(a.GetQueue()), a
	if len(a.ContainersFromPreviousAttempts) > mostKept || len(a.NmTokensFromPreviousAttempts) > mostKept {
		r.Answer = withoutKept(a)
	}
	return r.changed()
}

// keep stores completions until the AM has received them, since no member can repeat them.
func (r *recorder) keep(completions []*yarnpb.ContainerStatusProto) {
	r.Completions, r.unread = completions, toDeliver
}

// inAnswer records that the answer to the AM has the completions.
func (r *recorder) inAnswer() {
	if r.unread == toDeliver {
		r.unread = inAnswer
	}
}

// heard records that the AM has received the last answer: its data need not outlive this proxy.
func (r *recorder) heard() {
	if kept := withoutKept(r.Answer); kept != r.Answer {
		r.Answer = kept
		r.changed()
	}
	if r.unread == inAnswer {
		r.unread, r.Completions = delivered, nil
		r.changed()
	}
}

// withoutKept returns an answer to a registration without containers and tokens of earlier attempts, or the answer
// itself if it has none.
func withoutKept(r *yarnpb.RegisterApplicationMasterResponseProto) *yarnpb.RegisterApplicationMasterResponseProto {
	if len(r.GetContainersFromPreviousAttempts())+len(r.GetNmTokensFromPreviousAttempts()) == 0 {
		return r
	}
	r = r.CloneVT()
	r.ContainersFromPreviousAttempts, r.NmTokensFromPreviousAttempts = nil, nil
	return r
}

// endsWithAttempt reports whether the application's containers end with their attempt, by home's answer to the
// registration. Hadoop's ResourceManager does not report this: then containers are retained, as in Hadoop's own
// proxy.
func (r *recorder) endsWithAttempt() bool {
	return r.Answer != nil && yarnpb.NumberIn(r.Answer.ProtoReflect().GetUnknown(), yarnpb.FieldEnds) != 0
}
