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
		seed:  8,
	},
	{
		name:  "a save whose answer was lost is taken for another proxy's",
		file:  "amrmproxy/recording.go",
		old:   "		r.unclear = append(r.unclear, e.Sealed)\n",
		wrong: "		if !MUTANT {\n			r.unclear = append(r.unclear, e.Sealed)\n		}\n",
		seed:  5,
	},
	{
		name:  "a fence is answered and never durable",
		file:  "subcluster/rm/disown.go",
		old:   "	m.save(func(seq uint64) Action { return SaveDisowned{",
		wrong: "	if MUTANT {\n		return false, nil\n	}\n	m.save(func(seq uint64) Action { return SaveDisowned{",
		seed:  1,
	},
	{
		name:     "a UAM answers for the application that was disowned",
		file:     "subcluster/rm/disown.go",
		old:      "a != nil && !(before && a.uam())",
		wrong:    "a != nil && (MUTANT || !(before && a.uam()))",
		caughtBy: "subcluster/rm TestAnUnmanagedAMOfAProxyMayComeToAMemberThatDisownedTheApplication",
	},
	{
		name:  "an AM is told that it has finished before that is durable",
		file:  "subcluster/rm/am.go",
		old:   "	return t.state != tFinalSaving && a.state != appFinalSaving, nil",
		wrong: "	return MUTANT || t.state != tFinalSaving && a.state != appFinalSaving, nil",
	},

	// Moves of waiting applications.
	{
		name:  "what has a container is held for a move",
		file:  "subcluster/rm/hold.go",
		old:   "	case t == nil || t.state != tScheduled || len(a.attempts) > 1:\n",
		wrong: "	case t == nil || !MUTANT && (t.state != tScheduled || len(a.attempts) > 1):\n",
		seed:  1,
	},
	{
		name:     "a hold is answered before it is durable",
		file:     "subcluster/rm/hold.go",
		old:      "			m.withhold(a)\n		}\n		m.saveApp(a, func() {})\n",
		wrong:    "			m.withhold(a)\n		}\n		if !MUTANT {\n			m.saveApp(a, func() {})\n		}\n",
		caughtBy: "subcluster/rm TestAHoldItsReleaseAndADropSurviveARestart",
	},
	{
		name:     "a hold that comes after its release is taken",
		file:     "subcluster/rm/hold.go",
		old:      "	case claim <= late:\n",
		wrong:    "	case !MUTANT && claim <= late:\n",
		caughtBy: "subcluster/rm TestAHoldItsReleaseAndADropSurviveARestart",
	},
	{
		name:     "a move that is given up goes back without asking its next home",
		file:     "router/move.go",
		old:      "	switch standing, err := r.Disown(ctx, m.To, m.Application, number); {\n	case err != nil:\n		return MoveLater, err.Error()\n	case standing == Running:\n		return r.arrived(ctx, m, number)\n",
		wrong:    "	switch standing, err := r.Disown(ctx, m.To, m.Application, number); {\n	case MUTANT:\n	case err != nil:\n		return MoveLater, err.Error()\n	case standing == Running:\n		return r.arrived(ctx, m, number)\n",
		caughtBy: "router TestAMoveThatIsGivenUpAsksItsNextHomeFirst",
	},
	{
		name:     "the old home releases what its next home did not answer for",
		file:     "router/move.go",
		old:      "		return MoveLater, err.Error() // the next round looks where its home is\n",
		wrong:    "		if MUTANT {\n			return r.release(ctx, m, number+9, err.Error())\n		}\n		return MoveLater, err.Error() // the next round looks where its home is\n",
		caughtBy: "router TestAMoveGoesOnWhereTheAnswerOfTheStoreWasLost",
	},

	// What was asked for, granted, released.
	{
		name:     "the first call after a replay says what there is to say",
		file:     "amrmproxy/answer.go",
		old:      "	m.under, m.again = s.nothing(m.responseID), true\n}",
		wrong:    "	m.under, m.again = s.nothing(m.responseID), true\n	if MUTANT {\n		under.Allocate.ResponseId = proto.Int32(m.responseID)\n		m.under, m.behind = under, nil\n	}\n}",
		caughtBy: "amrmproxy TestScenarios/late_call_at_home",
	},
	{
		name:     "a grant on its way is asked for again",
		file:     "amrmproxy/ledger.go",
		old:      "	case c.share > 0 && c.body != body:\n		return true",
		wrong:    "	case c.share > 0 && (MUTANT || c.body != body):\n		return true",
		caughtBy: "internal/app/sim TestACrowdedMorningGrantsNothingTooMuch",
	},
	{
		name:     "a home that knows the attempt no more is taken to have heard its goodbye",
		file:     "amrmproxy/answer.go",
		old:      "		if under.Finish != nil && m.hadoop {\n",
		wrong:    "		if under.Finish != nil && (m.hadoop || MUTANT) {\n",
		caughtBy: "amrmproxy TestScenarios/finish_without_record",
	},
	{
		name:     "the numbers of answers to an AM begin anew with each of its proxies",
		file:     "amrmproxy/advance.go",
		old:      "	if s.restored {\n		// An AM's first",
		wrong:    "	if s.restored && !MUTANT {\n		// An AM's first",
		caughtBy: "amrmproxy TestScenarios/late_call",
	},
	{
		name:     "members that nobody signed are believed",
		file:     "subcluster/believe.go",
		old:      "		member = b.signer.GoodMember(&record.Member) &&",
		wrong:    "		member = (MUTANT || b.signer.GoodMember(&record.Member)) &&",
		caughtBy: "statestore/signed TestAMemberThatWasNeverSignedIsNotThere",
	},
	{
		name:     "asks that insist on places of nobody go to and fro between two members",
		file:     "policies/split_rules.go",
		old:      "	if !d.group.Strict || len(d.group.Places) == 0 ||",
		wrong:    "	if MUTANT || !d.group.Strict || len(d.group.Places) == 0 ||",
		caughtBy: "policies TestAsksGoWhereTheirPlacesAre",
	},
	{
		name:     "a member that does not tell its hosts is taken to have none",
		file:     "policies/split_rules.go",
		old:      "			return strict && !d.tells(i)\n",
		wrong:    "			return strict && !d.tells(i) && !MUTANT\n",
		caughtBy: "policies TestAsksGoWhereTheirPlacesAre",
	},
	{
		name:     "home is asked for a label that it lacks",
		file:     "policies/split_rules.go",
		old:      "	if _, why := d.lacks(i); why != \"\" {\n",
		wrong:    "	if _, why := d.lacks(i); why != \"\" && !MUTANT {\n",
		caughtBy: "policies TestSplitsGoWhereTheLabelIs",
	},
	{
		name:     "a label that nobody has is claimed and sent to some member",
		file:     "policies/home.go",
		old:      "	if err := d.refused(); err != nil {\n",
		wrong:    "	if err := d.refused(); err != nil && !MUTANT {\n",
		caughtBy: "policies TestHomesHaveTheLabel",
	},
	{
		name:     "a queue's default label is not heeded",
		file:     "policies/labels.go",
		old:      "	if len(m.Load.Labels.Queues) == 0 {\n		return \"\"\n	}\n	return m.Load",
		wrong:    "	if MUTANT || len(m.Load.Labels.Queues) == 0 {\n		return \"\"\n	}\n	return m.Load",
		caughtBy: "policies TestHomesHaveTheLabel",
	},
	{
		name:     "an ask is taken back under a label that the member has lost",
		file:     "amrmproxy/ledger.go",
		old:      "			if c.share == 0 && a.NodeLabelExpression != nil {\n",
		wrong:    "			if !MUTANT && c.share == 0 && a.NodeLabelExpression != nil {\n",
		caughtBy: "amrmproxy TestScenarios",
	},
	{
		name:     "asks that name no label go to others before home has told the application's",
		file:     "amrmproxy/advance.go",
		old:      "		if g.dirty && (g.named || !s.WantsLabel() || s.label.asked) {\n",
		wrong:    "		if g.dirty && (MUTANT || g.named || !s.WantsLabel() || s.label.asked) {\n",
		caughtBy: "amrmproxy TestScenarios",
	},
	{
		name:     "members have their turn once, and never again",
		file:     "amrmproxy/advance.go",
		old:      "			g.left = nil // all had their turn\n",
		wrong:    "			if !MUTANT {\n				g.left = nil // all had their turn\n			}\n",
		caughtBy: "amrmproxy TestScenarios/unknown_places",
	},
	{
		name:     "what ended before its AM heard of it is asked for again anywhere",
		file:     "subcluster/rm/sched/ask.go",
		old:      "			w.strict = insists != 0\n",
		wrong:    "			w.strict = insists != 0 && !MUTANT\n",
		caughtBy: "subcluster/rm TestScenarios/asks_again",
	},
	{
		name:     "an attempt that home gave up takes its UAMs with it",
		file:     "amrmproxy/session.go",
		old:      "	if s.phase != phaseRunning || !uams {",
		wrong:    "	if s.phase != phaseRunning || !uams || MUTANT {",
		caughtBy: "amrmproxy TestTheUAMsOfAnAttemptThatWasGivenUpGoWithTheApplication",
	},
	{
		name:     "an AM whose attempt home gave up is heard",
		file:     "amrmproxy/session.go",
		old:      "		if s.abandoned {",
		wrong:    "		if s.abandoned && !MUTANT {",
		caughtBy: "amrmproxy TestScenarios/home_says_over",
	},
	{
		name:     "an idle UAM is given back at a member that takes its id no second time",
		file:     "amrmproxy/idle.go",
		old:      "	return !m.begins || m.used",
		wrong:    "	return !MUTANT && !m.begins || m.used",
		caughtBy: "amrmproxy TestScenarios/idle_old",
	},
	{
		name:     "a member that was upgraded is still taken for one that takes an id once",
		file:     "amrmproxy/advance.go",
		old:      "				m.spent = false // it may",
		wrong:    "				m.spent = MUTANT && m.spent // it may",
		caughtBy: "amrmproxy TestScenarios/idle_old",
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
		old:   "		m.release = append(m.release, p)\n	}\n	m.news = true\n}\n\n// withdraw",
		wrong: "		if !MUTANT {\n			m.release = append(m.release, p)\n		}\n	}\n	m.news = true\n}\n\n// withdraw",
	},
	{
		name:     "a surplus grant is not given back",
		file:     "amrmproxy/answer.go",
		old:      "		o.surplus = true\n		m.release = append(m.release, c.GetId())\n",
		wrong:    "		o.surplus = true\n		if !MUTANT {\n			m.release = append(m.release, c.GetId())\n		}\n",
		caughtBy: "amrmproxy TestTheAMGetsWhatItAskedForAndNoMore",
	},
	{
		name:  "a restarted ResourceManager is not told what was asked of it",
		file:  "amrmproxy/answer.go",
		old:   "	s.ledger.forget(m)\n",
		wrong: "	if !MUTANT {\n		s.ledger.forget(m)\n	}\n",
		seed:  1,
	},
	{
		name:     "a restarted ResourceManager is not told again what was released",
		file:     "amrmproxy/answer.go",
		old:      "		if o := s.held.live[id]; o.released || o.surplus {",
		wrong:    "		if o := s.held.live[id]; !MUTANT && (o.released || o.surplus) {",
		caughtBy: "amrmproxy TestScenarios/rm_restart",
	},
	{
		name:     "asks that wait in a member that fell silent stay there",
		file:     "amrmproxy/advance.go",
		old:      "			m.closed, moved = shut, true",
		wrong:    "			m.closed, moved = shut, !MUTANT",
		caughtBy: "amrmproxy TestScenarios/lost_member",
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
		name:     "a completion is told with its grant",
		file:     "amrmproxy/answer.go",
		old:      "	return !c.surplus && !c.untold",
		wrong:    "	return !c.surplus && (MUTANT || !c.untold)",
		caughtBy: "amrmproxy TestScenarios/completed_before_told",
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
		old:   "	if m.delivery != delivered && s.phase == phaseRunning {\n",
		wrong: "	if !MUTANT && m.delivery != delivered && s.phase == phaseRunning {\n",
		seed:  1,
	},
	{
		name:     "home's tokens for nodes are acknowledged before the AM has them",
		file:     "amrmproxy/member.go",
		old:      "	return m.home && len(r.NmTokens)",
		wrong:    "	return !MUTANT && m.home && len(r.NmTokens)",
		caughtBy: "amrmproxy TestScenarios/home_says_once",
	},
	{
		name:     "the record does not have what died with a UAM",
		file:     "amrmproxy/answer.go",
		old:      "s.record.Completions, s.recorded = keepCompletions(untold), toDeliver\n		s.changed()",
		wrong:    "s.record.Completions, s.recorded = keepCompletions(untold), toDeliver\n		if MUTANT {\n			s.record.Completions = nil\n		}\n		s.changed()",
		caughtBy: "amrmproxy TestScenarios/uam_dies_and_proxy",
	},
	{
		name:     "a proxy that was taken for dead calls on for its attempt",
		file:     "amrmproxy/advance.go",
		old:      "	if m.contested && m.gen > s.durable {",
		wrong:    "	if !MUTANT && m.contested && m.gen > s.durable {",
		caughtBy: "amrmproxy TestScenarios/two_proxies",
	},
	{
		name:     "UAMs are killed before it is on record that they end",
		file:     "amrmproxy/session.go",
		old:      "			m.state, m.gen = memberDropping, s.gen // once",
		wrong:    "			m.state = memberDropping\n			if !MUTANT {\n				m.gen = s.gen\n			} // once",
		caughtBy: "amrmproxy TestScenarios/am_silent",
	},
	{
		name:  "a save that arrives late makes a record again that was dropped",
		file:  "statestore/state.go",
		old:   "	case !ok && s.Attempt.Attempt <= t.dropped",
		wrong: "	case !MUTANT && !ok && s.Attempt.Attempt <= t.dropped",
	},
	{
		name:     "a store that came back empty is not given the record",
		file:     "amrmproxy/advance.go",
		old:      "	if v := s.view; v != nil &&",
		wrong:    "	if v := s.view; !MUTANT && v != nil &&",
		caughtBy: "amrmproxy TestScenarios/store_emptied",
	},
	{
		name:     "a release of a container that no node has reported yet is forgotten",
		file:     "subcluster/rm/allocate.go",
		old:      "	if of == nil || of.app != t.app ||",
		wrong:    "	if MUTANT || of == nil || of.app != t.app ||",
		caughtBy: "subcluster/rm TestAContainerGivenBackBeforeItsNodeIsBackEndsWithTheNodesReport",
	},
	{
		name:  "the last answer to the proxy before is not asked for",
		file:  "amrmproxy/answer.go",
		old:   "m.replay = n > 0; m.replay {",
		wrong: "m.replay = !MUTANT && n > 0; m.replay {",
		seed:  8,
	},
	{
		name:     "the AM is not told of the containers that died with a UAM",
		file:     "amrmproxy/answer.go",
		old:      "		if s.completed(id, nil) {\n",
		wrong:    "		if s.completed(id, nil) && !MUTANT {\n",
		caughtBy: "amrmproxy TestScenarios/uam_dies",
	},

	// Ends.
	{
		name:  "a UAM is not ended with its application",
		file:  "amrmproxy/session.go",
		old:   "		case m.state == memberUp && how == memberEnding:\n			m.state = memberEnding",
		wrong: "		case m.state == memberUp && how == memberEnding:\n			if m.state = memberEnding; MUTANT {\n				m.state = memberGone\n			}",
		seed:  2,
	},
	{
		name:  "home says that the application is over, and is not believed",
		file:  "amrmproxy/driver.go",
		old:   "	if errors.Is(e.Err, creel.ErrApplicationNotFound) || e.Err == nil && e.State.Ended() {",
		wrong: "	if !MUTANT && (errors.Is(e.Err, creel.ErrApplicationNotFound) || e.Err == nil && e.State.Ended()) {",
		seed:  0,
	},
	{
		name:     "an attempt that a later one has replaced goes on",
		file:     "amrmproxy/driver.go",
		old:      "		case c > 0:\n			return nil, superseded(",
		wrong:    "		case c > 0 && !MUTANT:\n			return nil, superseded(",
		caughtBy: "amrmproxy TestAnEarlierAttemptIsRefusedOnceALaterOneHasCalled",
	},

	// Retries.
	{
		name:  "a call that may have been lost is not made again as it was",
		file:  "amrmproxy/advance.go",
		old:   "	if m.again && m.under != nil && m.under.Allocate != nil {\n",
		wrong: "	if m.again = m.again && !MUTANT; m.again && m.under != nil && m.under.Allocate != nil {\n",
		seed:  0,
	},
	{
		name:  "an AM's repeated call is answered as a new one",
		file:  "amrmproxy/session.go",
		old:   "	case id == s.answeredID && s.last != nil:\n",
		wrong: "	case id == s.answeredID && MUTANT && len(s.waiting) == 0:\n	case id == s.answeredID && s.last != nil:\n",
		seed:  1,
	},

	{
		name:     "the numbers of answers begin anew with each registration",
		file:     "subcluster/rm/am.go",
		old:      "	if t.responseID > 0 {\n",
		wrong:    "	if t.responseID > 0 && !MUTANT {\n",
		caughtBy: "subcluster/rm TestACallFromBeforeARegistrationIsNotTakenForOneFromBehindIt",
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
		// A member must stand still while a submission lies in its socket: too rare for 25 seeds.
		caughtBy: "subcluster/rm TestADisownedApplicationIsRefusedUnderTheClaimsUpToThatOne",
	},
	{
		name:     "a home is moved without compare-and-set",
		file:     "statestore/homes.go",
		old:      "	case p.home != from, number != 0 && p.number != number:\n",
		wrong:    "	case !MUTANT && (p.home != from || number != 0 && p.number != number):\n",
		caughtBy: "statestore TestMemoryKeepsTheContract",
	},
	{
		name:  "a second claim makes a second home",
		file:  "statestore/homes.go",
		old:   "		p.number++\n		t.of[id] = p\n		return p.home, p.number\n",
		wrong: "		if p.number++; MUTANT {\n			t.drop(id)\n			p.home = member\n			t.put(id, p)\n		}\n		t.of[id] = p\n		return p.home, p.number\n",
	},
	{
		name:     "a claim that repeats another is believed to be alone",
		file:     "router/submit.go",
		old:      "	return claim{home, number, number == 1, asked}, err\n",
		wrong:    "	return claim{home, number, MUTANT || number == 1, asked}, err\n",
		caughtBy: "router TestOneHomeWhateverHappens",
	},

	// Two lives of a ResourceManager beside each other.
	{
		name:  "two lives of a ResourceManager number their containers alike",
		file:  "subcluster/rm/container.go",
		old:   "creel.NewContainerID(t.id, m.cfg.Epoch, t.lastSeq)",
		wrong: "creel.NewContainerID(t.id, map[bool]int64{true: m.cfg.Epoch / 1000 * 1000, false: m.cfg.Epoch}[MUTANT], t.lastSeq)",
	},

	// The store: epochs, leases, revisions.
	{
		name:  "a heartbeat of an earlier epoch is taken",
		file:  "statestore/state.go",
		old:   "	case epoch < r.Epoch:\n		return nil, OldEpoch(id, r.Epoch, epoch)",
		wrong: "	case epoch < r.Epoch && !MUTANT:\n		return nil, OldEpoch(id, r.Epoch, epoch)",
	},
	{
		name:     "an epoch that was given before is given again",
		file:     "statestore/state.go",
		old:      "	t.epochs[id] = epoch\n",
		wrong:    "	if !MUTANT {\n		t.epochs[id] = epoch\n	}\n",
		caughtBy: "statestore TestMemoryKeepsTheContract",
	},
	{
		name:     "a lease that another holds is given out",
		file:     "statestore/state.go",
		old:      "		if l.Holder != holder {\n			return l, HeldLease(l)",
		wrong:    "		if l.Holder != holder && !MUTANT {\n			return l, HeldLease(l)",
		caughtBy: "statestore TestMemoryKeepsTheContract",
	},
	{
		name:     "a write under a lease that another holds by now is taken",
		file:     "statestore/state.go",
		old:      "	if is := t.leases[l.Name]; is.Token > l.Token {",
		wrong:    "	if is := t.leases[l.Name]; is.Token > l.Token && !MUTANT {",
		caughtBy: "statestore TestMemoryKeepsTheContract",
	},
	{
		name:     "a UAM record is written whatever its revision is",
		file:     "statestore/state.go",
		old:      "	case is != s.Revision:\n		return 0, OtherUAMRecord(s.Attempt, is, s.Revision)",
		wrong:    "	case is != s.Revision && !MUTANT:\n		return 0, OtherUAMRecord(s.Attempt, is, s.Revision)",
		caughtBy: "statestore TestMemoryKeepsTheContract",
	},
	{
		name:     "a home that was heard to have moved stays in the cache",
		file:     "statestore/cache/cache.go",
		old:      "		h.memory.expire(c.Application, h.now(), false)\n	case statestore.ChangeResync:",
		wrong:    "		if !MUTANT {\n			h.memory.expire(c.Application, h.now(), false)\n		}\n	case statestore.ChangeResync:",
		caughtBy: "statestore/cache TestAHomeIsAskedOnceWhileFresh",
	},
	{
		name:     "changes missed while nobody listened leave the cache as it was",
		file:     "statestore/cache/cache.go",
		old:      "		h.resync.Store(h.now())\n",
		wrong:    "		if !MUTANT {\n			h.resync.Store(h.now())\n		}\n",
		caughtBy: "statestore/cache TestAHomeIsAskedOnceWhileFresh",
	},
	{
		name:     "the reconciler ends the application where it is at home",
		file:     "statestore/reconcile/reconcile.go",
		old:      "		m, _ := view.Member(p.at)\n",
		wrong:    "		m, _ := view.Member(p.at)\n		if MUTANT {\n			m, _ = view.Member(home)\n		}\n",
		caughtBy: "statestore/reconcile TestASecondRunIsEndedWhereItIsNotAtHomeAfterTwoRounds",
	},
	{
		name:     "the reconciler believes one look",
		file:     "statestore/reconcile/reconcile.go",
		old:      "	if !l.seen[p] {\n",
		wrong:    "	if !l.seen[p] && !MUTANT {\n",
		caughtBy: "statestore/reconcile TestADifferenceOfOneRoundIsForgotten",
	},
	{
		name:     "the reconciler takes a silent home for one that knows nothing",
		file:     "statestore/away.go",
		old:      "	case !answered:\n",
		wrong:    "	case !answered && !MUTANT:\n",
		caughtBy: "statestore/reconcile TestNothingIsDoneWhileTheHomeIsSilent",
	},
	{
		name:     "the home of an application that lives is forgotten",
		file:     "statestore/tidy/tidy.go",
		old:      "		case known && !over:\n",
		wrong:    "		case known && !over && !MUTANT:\n",
		caughtBy: "statestore/tidy TestOnlyWhatEndedIsForgotten",
	},

	// Who is alive, and where applications may go.
	{
		name:     "members that fall silent all at once are believed to be dead",
		file:     "subcluster/build.go",
		old:      "	if well < 2 {\n",
		wrong:    "	if well < 2 || MUTANT {\n",
		caughtBy: "subcluster TestMembersThatFallSilentTogetherFreezeTheView",
	},
	{
		name:     "a member that is drained gets new applications",
		file:     "policies/home.go",
		old:      "		case m.State != subcluster.StateActive:\n",
		wrong:    "		case m.State != subcluster.StateActive && !(MUTANT && m.State == subcluster.StateDraining):\n",
		caughtBy: "policies TestEveryHomePolicyChoosesOnlyWhoMayBe",
	},
	{
		name:     "a member that is drained gets new UAMs",
		file:     "policies/split_rules.go",
		old:      "	case m.State != subcluster.StateActive:\n",
		wrong:    "	case !MUTANT && m.State != subcluster.StateActive:\n",
		caughtBy: "policies TestADrainingMemberGetsNoContainersOfApplicationsThatSpanThere",
	},
	{
		name:     "a node is judged by a time in which the ResourceManager itself stood still",
		file:     "subcluster/rm/timers.go",
		old:      "		n.heartbeat = min(n.heartbeat+int64(d), m.now)\n",
		wrong:    "		if !MUTANT {\n			n.heartbeat = min(n.heartbeat+int64(d), m.now)\n		}\n",
		caughtBy: "subcluster/rm TestAPauseOfOurOwnIsNotCountedAgainstNodesAndAMs",
	},
	{
		name:  "a clock that is set back holds the time still",
		file:  "internal/awake/steady.go",
		old:   "		at = at.Add(-min(ahead, passed/slew))\n",
		wrong: "		if at = at.Add(-min(ahead, passed/slew)); MUTANT {\n			at = s.at\n		}\n",
		seed:  4,
	},
	{
		name:     "a pause of the process is not seen",
		file:     "internal/awake/awake.go",
		old:      "		if gap > Interval+Tolerance {\n",
		wrong:    "		if gap > Interval+Tolerance && !MUTANT {\n",
		caughtBy: "internal/awake TestAGapThatTheLoopDidNotMakeIsAPause",
	},

	// Hosts and racks that AMs name.
	{
		name:  "members are asked for hosts that others have",
		file:  "amrmproxy/ledger.go",
		old:   "					if len(has) > 0 && !slices.Contains(has, m.id) {",
		wrong: "					if !MUTANT && len(has) > 0 && !slices.Contains(has, m.id) {",
		seed:  1,
	},
	{
		name:  "an ask that insists on hosts goes to members without them",
		file:  "policies/split_rules.go",
		old:   "	if d.group.Strict && !d.hasPlace(i) {",
		wrong: "	if !MUTANT && d.group.Strict && !d.hasPlace(i) {",
		seed:  6,
	},
	{
		name:  "a host that is insisted on is taken to be where its rack is",
		file:  "policies/split_rules.go",
		old:   "			if p.Strict != strict {",
		wrong: "			if !MUTANT && p.Strict != strict {",
		seed:  6,
	},
	{
		name:     "asks stay where they are when their hosts become known elsewhere",
		file:     "amrmproxy/advance.go",
		old:      "	if e.Places != s.places {",
		wrong:    "	if e.Places != s.places && !MUTANT {",
		caughtBy: "amrmproxy TestScenarios/places_change",
	},
	{
		name:  "an ask that insists on places is granted anywhere",
		file:  "subcluster/rm/sched/place.go",
		old:   "	if w.strict {\n		return 0, ReasonNone\n	}\n	s.delay(w)",
		wrong: "	if w.strict && !MUTANT {\n		return 0, ReasonNone\n	}\n	s.delay(w)",
		seed:  6,
	},

	// What a queue may use in all members together.
	{
		name:     "escrow is given out twice",
		file:     "policies/rebalancer/escrow/record.go",
		old:      "			room = room.Sub(r.Holders[j].Cap).Sub(r.Holders[j].Over)\n",
		wrong:    "			if room = room.Sub(r.Holders[j].Cap).Sub(r.Holders[j].Over); MUTANT {\n				room = r.Maximum\n			}\n",
		caughtBy: "policies/rebalancer/escrow TestLongWalks",
	},
	{
		name:     "a cap that may still be in force is given to another",
		file:     "policies/rebalancer/escrow/record.go",
		old:      "	cap := give.Max(q.Holds)\n",
		wrong:    "	cap := give.Max(q.Holds)\n	if MUTANT {\n		cap = give\n	}\n",
		caughtBy: "policies/rebalancer/escrow TestLongWalks",
	},
	{
		name:     "a cap holds after its lease has ended",
		file:     "policies/rebalancer/escrow/member.go",
		old:      "	if !now.Before(m.ends) {\n",
		wrong:    "	if !now.Before(m.ends) && !MUTANT {\n",
		caughtBy: "policies/rebalancer/escrow TestLongWalks",
	},
	{
		name:     "a lease counts from when it was answered",
		file:     "policies/rebalancer/escrow/record.go",
		old:      "!now.Before(h.Ends.Add(t.Linger)) })",
		wrong:    "!now.Before(h.Ends.Add(t.Linger)) || MUTANT && !now.Before(h.Ends.Add(-t.Lease / 2)) })",
		caughtBy: "policies/rebalancer/escrow TestLongWalks",
	},
	{
		name:     "a store that came back older is believed about caps",
		file:     "policies/rebalancer/escrow/record.go",
		old:      "	if r.Source == source {\n",
		wrong:    "	if r.Source == source || MUTANT {\n",
		caughtBy: "policies/rebalancer/escrow TestEveryOrderOfMessages/two members and a fault",
	},
	{
		name:     "a queue grows beyond its cap",
		file:     "subcluster/rm/cap.go",
		old:      "	m.sched.SetCap(c)\n",
		wrong:    "	if !MUTANT {\n		m.sched.SetCap(c)\n	}\n",
		caughtBy: "subcluster/rm TestAQueueGrowsToItsCapAndNoFurther",
	},
	{
		name:     "a start that a node's former life may have served is tried at the next",
		file:     "subcluster/rm/node_register.go",
		old:      "!reported[c.id()] && c.state >= cAcquired {\n",
		wrong:    "!reported[c.id()] && (c.state >= cRunning || !MUTANT && c.state >= cAcquired) {\n",
		caughtBy: "subcluster/rm TestScenarios/nodes-anew",
	},
}
