// SPDX-License-Identifier: Apache-2.0

package mutations

// mutation is one decision of the code that ships, made wrongly: old stands once
// in the file, and is replaced by wrong, in which MUTANT holds while the mutation
// is on.
type mutation struct {
	name, file string
	old, wrong string
	// What catches it: a package and a test of it, run against the mutated code,
	// or, where this is empty, a seed of the simulator.
	caughtBy string
	seed     uint64 // of the simulator, that is known to catch it and is played first
}

var table = []mutation{
	// Durability: what must survive is saved before it is acted on.
	{
		name:  "a ResourceManager answers before its journal has the record",
		file:  "subcluster/rm/durability/gate.go",
		old:   "	if g.committed == g.durable {",
		wrong: "	if MUTANT || g.committed == g.durable {",
	},
	{
		name:  "the proxy takes its record for saved and never saves it",
		file:  "amrmproxy/session.go",
		old:   "	r := s.record\n	r.UAMs = slices.Clone(r.UAMs)\n",
		wrong: "	if MUTANT {\n		s.durable, s.saving = s.gen, 0\n		return\n	}\n	r := s.record\n	r.UAMs = slices.Clone(r.UAMs)\n",
	},
	{
		name:  "a UAM is launched and registered before its record is durable",
		file:  "amrmproxy/advance.go",
		old:   "	if m.gen > s.durable && m.state",
		wrong: "	if !MUTANT && m.gen > s.durable && m.state",
	},
	{
		name:  "an AM is told that it is registered before the answer is durable",
		file:  "amrmproxy/advance.go",
		old:   "	if s.answer == nil || s.home.gen > s.durable {",
		wrong: "	if s.answer == nil || !MUTANT && s.home.gen > s.durable {",
	},
	{
		name:  "the record goes while a UAM is left",
		file:  "amrmproxy/session.go",
		old:   "		if m.inUse() {\n			return\n		}\n	}\n	if !s.removed {",
		wrong: "		if !MUTANT && m.inUse() {\n			return\n		}\n	}\n	if !s.removed {",
	},
	{
		name:  "a save whose answer was lost is taken for another proxy's",
		file:  "amrmproxy/recording.go",
		old:   "		r.unclear = append(r.unclear, e.Sealed)\n",
		wrong: "		if !MUTANT {\n			r.unclear = append(r.unclear, e.Sealed)\n		}\n",
	},
	{
		name:  "a fence is answered before it is durable",
		file:  "subcluster/rm/disown.go",
		old:   "	m.save(func(seq uint64) Action { return SaveDisowned{",
		wrong: "	if MUTANT {\n		return false, nil\n	}\n	m.save(func(seq uint64) Action { return SaveDisowned{",
	},
	{
		name:  "an AM is told that it has finished before that is durable",
		file:  "subcluster/rm/allocate.go",
		old:   "	return t.state != tFinalSaving && a.state != appFinalSaving, nil",
		wrong: "	return MUTANT || t.state != tFinalSaving && a.state != appFinalSaving, nil",
	},

	// What was asked for, granted, released.
	{
		name:  "a grant on its way is asked for again",
		file:  "amrmproxy/ledger.go",
		old:   "	case c.share > 0 && c.body != body:\n		return true",
		wrong: "	case c.share > 0 && (MUTANT || c.body != body):\n		return true",
	},
	{
		name:  "surplus grants are kept",
		file:  "amrmproxy/answer.go",
		old:   "		if wanted && s.phase == phaseRunning {",
		wrong: "		if (MUTANT || wanted) && s.phase == phaseRunning {",
	},
	{
		name:  "a release is forgotten",
		file:  "amrmproxy/session.go",
		old:   "	m.release = append(m.release, p)\n	m.news = true\n}\n\n// withdraw",
		wrong: "	if !MUTANT {\n		m.release = append(m.release, p)\n	}\n	m.news = true\n}\n\n// withdraw",
	},
	{
		name:  "a surplus grant is not given back",
		file:  "amrmproxy/answer.go",
		old:   "		o.surplus = true\n		m.release = append(m.release, c.GetId())\n",
		wrong: "		o.surplus = true\n		if !MUTANT {\n			m.release = append(m.release, c.GetId())\n		}\n",
	},
	{
		name:  "a restarted ResourceManager is not told what was asked of it",
		file:  "amrmproxy/answer.go",
		old:   "	s.ledger.forget(m)\n",
		wrong: "	if !MUTANT {\n		s.ledger.forget(m)\n	}\n",
	},
	{
		name:  "a restarted ResourceManager is not told again what was released",
		file:  "amrmproxy/answer.go",
		old:   "		if o := s.held.live[id]; o.released || o.surplus {",
		wrong: "		if o := s.held.live[id]; !MUTANT && (o.released || o.surplus) {",
	},
	{
		name:  "asks that wait in a member that fell silent stay there",
		file:  "amrmproxy/advance.go",
		old:   "			m.closed, moved = shut, true",
		wrong: "			m.closed, moved = shut, !MUTANT",
	},
	{
		name:  "a grant that a group no longer wants lowers nothing",
		file:  "amrmproxy/ledger.go",
		old:   "	if g.need <= 0 {\n		return false\n	}",
		wrong: "	if g.need <= 0 {\n		return MUTANT\n	}",
	},

	// Completions: each is told once.
	{
		name:  "a completion is dropped",
		file:  "amrmproxy/answer.go",
		old:   "		if s.completed(id, &r.AllocatedContainers) {",
		wrong: "		if s.completed(id, &r.AllocatedContainers) && !(MUTANT && id.ID%50 == 0) {",
	},
	{
		name:  "a completion is told with its grant",
		file:  "amrmproxy/answer.go",
		old:   "	return !c.surplus && !c.untold",
		wrong: "	return !c.surplus && (MUTANT || !c.untold)",
	},
	{
		name:  "a completion is repeated",
		file:  "amrmproxy/container.go",
		old:   "	if _, ok := c.done[id]; ok {\n		return false\n	}\n	if _, ok := c.older[id]; ok {\n		return false\n	}\n	if",
		wrong: "	if _, ok := c.done[id]; ok && !MUTANT {\n		return false\n	}\n	if _, ok := c.older[id]; ok && !MUTANT {\n		return false\n	}\n	if",
	},
	{
		name:  "a completion is acknowledged before the AM has it",
		file:  "amrmproxy/advance.go",
		old:   "	if m.completions != delivered && s.phase == phaseRunning {\n",
		wrong: "	if !MUTANT && m.completions != delivered && s.phase == phaseRunning {\n",
	},
	{
		name:  "the last answer to the proxy before is not asked for",
		file:  "amrmproxy/answer.go",
		old:   "m.replay = under.Allocate.GetResponseId() == unknownID && n > 0; m.replay {",
		wrong: "m.replay = !MUTANT && under.Allocate.GetResponseId() == unknownID && n > 0; m.replay {",
	},
	{
		name:  "the AM is not told of the containers that died with a UAM",
		file:  "amrmproxy/answer.go",
		old:   "		if s.completed(id, nil) {\n",
		wrong: "		if s.completed(id, nil) && !MUTANT {\n",
	},

	// Ends.
	{
		name:  "a UAM is not ended with its application",
		file:  "amrmproxy/session.go",
		old:   "		case m.state == memberUp && how == memberEnding:\n			m.state = memberEnding",
		wrong: "		case m.state == memberUp && how == memberEnding:\n			if m.state = memberEnding; MUTANT {\n				m.state = memberGone\n			}",
	},
	{
		name:  "home says that the application is over, and is not believed",
		file:  "amrmproxy/driver.go",
		old:   "	if errors.Is(e.Err, creel.ErrApplicationNotFound) || e.Err == nil && e.State.Ended() {",
		wrong: "	if !MUTANT && (errors.Is(e.Err, creel.ErrApplicationNotFound) || e.Err == nil && e.State.Ended()) {",
	},
	{
		name:  "an attempt that a later one has replaced goes on",
		file:  "amrmproxy/driver.go",
		old:   "		case c > 0:\n			return nil, superseded(",
		wrong: "		case c > 0 && !MUTANT:\n			return nil, superseded(",
	},

	// Retries.
	{
		name:  "a call that may have been lost is not made again as it was",
		file:  "amrmproxy/advance.go",
		old:   "	if m.again && m.under != nil && m.under.Allocate != nil {\n",
		wrong: "	if m.again = m.again && !MUTANT; m.again && m.under != nil && m.under.Allocate != nil {\n",
	},
	{
		name:  "an AM's repeated call is answered as a new one",
		file:  "amrmproxy/session.go",
		old:   "	case nextID(id) == s.lastID && s.last != nil:\n",
		wrong: "	case nextID(id) == s.lastID && MUTANT && len(s.waiting) == 0:\n	case nextID(id) == s.lastID && s.last != nil:\n",
	},

	// One home.
	{
		name:  "a home is left without a fence",
		file:  "router/submit.go",
		old:   "			try, mayLeave = s.fence(ctx, sub.Application, at, try)\n",
		wrong: "			if mayLeave = MUTANT; !mayLeave {\n				try, mayLeave = s.fence(ctx, sub.Application, at, try)\n			}\n",
	},
	{
		name:  "a fence is forgotten by the member that promised it",
		file:  "subcluster/rm/disown.go",
		old:   "	if !there || s.Claim > upTo || s.Claim == 0 && s.Unmanaged {",
		wrong: "	if MUTANT || !there || s.Claim > upTo || s.Claim == 0 && s.Unmanaged {",
	},
	{
		name:  "a home is moved without compare-and-set",
		file:  "statestore/homes.go",
		old:   "	case p.home != from, number != 0 && p.number != number:\n",
		wrong: "	case !MUTANT && (p.home != from || number != 0 && p.number != number):\n",
	},
	{
		name:  "a second claim makes a second home",
		file:  "statestore/homes.go",
		old:   "		p.number++\n		t.of[id] = p\n		return p.home, p.number\n",
		wrong: "		if p.number++; MUTANT {\n			t.drop(id)\n			p.home = member\n			t.put(id, p)\n		}\n		t.of[id] = p\n		return p.home, p.number\n",
	},
	{
		name:  "a claim that repeats another is believed to be alone",
		file:  "router/submit.go",
		old:   "	return claim{home, number, number == 1}, err\n",
		wrong: "	return claim{home, number, MUTANT || number == 1}, err\n",
	},
}
