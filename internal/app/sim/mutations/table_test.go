// SPDX-License-Identifier: Apache-2.0

package mutations

// mutation is one decision of the code that ships, made wrongly: old stands once
// in the file, and is replaced by wrong.
type mutation struct {
	name, file string
	old, wrong string
	missed     bool // no seed catches it yet: the simulator cannot draw it, or the auditor does not ask
}

var table = []mutation{
	{
		name:  "a ResourceManager answers before its journal has the record",
		file:  "subcluster/rm/durability/gate.go",
		old:   "	if g.committed == g.durable {",
		wrong: "	if true {",
	},
	{
		name:  "a save is skipped",
		file:  "amrmproxy/session.go",
		old:   "	r := s.record\n	r.UAMs = slices.Clone(r.UAMs)\n	s.do(Save{Number: s.gen, Record: &r})",
		wrong: "	s.durable, s.saving = s.gen, 0",
	},
	{
		name:  "a UAM is launched and registered before its record is durable",
		file:  "amrmproxy/advance.go",
		old:   "if m.gen > s.durable && m.state != memberUp && m.state != memberEnding {",
		wrong: "if false {",
	},
	{
		name:  "an AM is told that it is registered before the answer is durable",
		file:  "amrmproxy/advance.go",
		old:   "if s.answer == nil || s.home.gen > s.durable {",
		wrong: "if s.answer == nil {",
	},
	{
		name:   "a grant on its way is asked for again",
		missed: true,
		file:   "amrmproxy/ledger.go",
		old:    "	case c.share > 0 && c.body != body:\n		return true",
		wrong:  "	case c.share > 0:\n		return true",
	},
	{
		name:  "surplus grants are kept",
		file:  "amrmproxy/answer.go",
		old:   "		if wanted && s.phase == phaseRunning {",
		wrong: "		if wanted || s.phase == phaseRunning {",
	},
	{
		name:  "a completion is dropped",
		file:  "amrmproxy/answer.go",
		old:   "		if s.completed(id, &r.AllocatedContainers) {",
		wrong: "		if s.completed(id, &r.AllocatedContainers) && id.ID%50 != 0 {",
	},
	{
		name:   "a completion is told with its grant",
		missed: true,
		file:   "amrmproxy/answer.go",
		old:    "	return !c.surplus && !c.untold",
		wrong:  "	return !c.surplus",
	},
	{
		name:  "a completion is repeated",
		file:  "amrmproxy/container.go",
		old:   "	if _, ok := c.done[id]; ok {\n		return false\n	}\n	if _, ok := c.older[id]; ok {\n		return false\n	}",
		wrong: "",
	},
	{
		name:  "a completion is acknowledged before the AM has it",
		file:  "amrmproxy/advance.go",
		old:   "	if m.completions != delivered && s.phase == phaseRunning {\n		return\n	}",
		wrong: "",
	},
	{
		name:  "the last answer to the proxy before is not asked for",
		file:  "amrmproxy/answer.go",
		old:   "m.replay = under.Allocate.GetResponseId() == unknownID && n > 0; m.replay {",
		wrong: "m.replay = false; m.replay {",
	},
	{
		name:  "a UAM is not ended with its application",
		file:  "amrmproxy/session.go",
		old:   "		case m.state == memberUp && how == memberEnding:\n			m.state = memberEnding",
		wrong: "		case m.state == memberUp && how == memberEnding:\n			m.state = memberGone",
	},
	{
		name:  "the record goes while a UAM is left",
		file:  "amrmproxy/session.go",
		old:   "	for _, m := range s.members {\n		if m.inUse() {\n			return\n		}\n	}\n	if !s.removed {",
		wrong: "	if !s.removed {",
	},
	{
		name:   "the AM is not told of the containers that died with a UAM",
		missed: true,
		file:   "amrmproxy/answer.go",
		old:    "			s.out.CompletedContainerStatuses = append(s.out.CompletedContainerStatuses, lostStatus(o.id, why))",
		wrong:  "			_ = lostStatus(o.id, why)",
	},
	{
		name:   "a restarted ResourceManager is not told what was asked of it",
		missed: true,
		file:   "amrmproxy/answer.go",
		old:    "	s.ledger.forget(m)",
		wrong:  "",
	},
	{
		name:   "a release is forgotten",
		missed: true,
		file:   "amrmproxy/session.go",
		old:    "	m.release = append(m.release, p)\n	m.news = true\n}\n\n// withdraw",
		wrong:  "	m.news = true\n}\n\n// withdraw",
	},
	{
		name:  "a call that may have been lost is not made again as it was",
		file:  "amrmproxy/advance.go",
		old:   "	if m.again && m.under != nil && m.under.Allocate != nil {\n		s.send(m, nil)\n		return\n	}",
		wrong: "	m.again = false",
	},
	{
		name:  "home says that the application is over, and is not believed",
		file:  "amrmproxy/driver.go",
		old:   "	if errors.Is(e.Err, creel.ErrApplicationNotFound) || e.Err == nil && e.State.Ended() {",
		wrong: "	if errors.Is(e.Err, creel.ErrNotPermitted) {",
	},
	{
		name:  "a save whose answer was lost is taken for another proxy's",
		file:  "amrmproxy/recording.go",
		old:   "		r.unclear = append(r.unclear, e.Sealed)",
		wrong: "",
	},
	{
		name:  "a home is left without a fence",
		file:  "router/submit.go",
		old:   "		if !mayLeave && try.Verdict != Accepted && !hopeless(try) {",
		wrong: "		if !hopeless(try) {\n			mayLeave = true\n		}\n		if !mayLeave {",
	},
	{
		name:  "a fence is forgotten by the member that promised it",
		file:  "subcluster/rm/disown.go",
		old:   "	upTo, there := m.disowned.claims[s.ID]",
		wrong: "	upTo, there := m.disowned.claims[s.ID]\n	there = there && upTo < 0",
	},
}
