// SPDX-License-Identifier: Apache-2.0

// Package sim runs a whole federation in virtual time, on the code that runs
// in the daemons: the ResourceManagers' machines, the NodeManagers', the
// proxies' sessions, the routers' submission core, the policies and the state
// store. It is what the machines' purity buys: no goroutine, no clock and no
// socket, so the same Config gives the same events, byte for byte, and a
// failure is a seed.
//
// # What it is made of
//
// World is an event heap and a random source. A host (a ResourceManager, a
// node, a proxy, a router, the store, a client) is what can be up or down and
// be cut off from others; call carries a request between two of them and the
// answer back, late, twice or never as the faults have it. Around each machine
// lies the driver that fulfils the duties its package names, and the daemons run
// the same code: the proxy's (amrmproxy.Driver, Recording, LaunchUAM, DropUAM), the
// ResourceManager's turn, its journal's records and the start of AMs
// (subcluster/rm/turn), the translation of messages and minting of tokens
// (subcluster/rm/codec), a node's pace and what it checks of a caller
// (subcluster/nm), how a process becomes a member and stays it (subcluster.Joining, in every second
// seed with faults; in the others it has its epoch when it starts), what follows from a
// read of the store (subcluster.Observer), who
// publishes and follows which member has which host (resolver.Publishing, Following),
// the router's submission, memory of homes and assumed load (package router), who keeps
// queues within federation-wide maxima and user limits (policies/rebalancer/server.Keeper) and
// has their capacities and preemption budgets follow a plan (Follower there), who plans, shares
// maxima out and audits (Leader there), and when a plan is read, by proxies in part
// (statestore/watch.PlanReader), and what users ask of members that are away and is kept until it is
// carried out (statestore/intents). A message between two hosts is the protobuf that goes over the
// wire.
//
// Where somebody plans, or there is a queue tree, times are the daemons' defaults, members
// report what has changed by much at their next look (codec.Loads.Changed), the leader plans
// for it at its own, and the store tells routers and proxies of what is written
// (statestore/watch.Hears). Elsewhere nobody goes by reports: members report at their
// heartbeats alone, and processes poll.
//
// The simulator's own are the event heap, the network, faults, clients and AMs, the
// auditor, and the loops that post and perform. It does not simulate that the store
// resumes a subscription, a queue tree in percent of members that come and go,
// master keys that roll, the check of an AM's token by its proxy,
// questions to routers about an application's home, and the loops of statestore/rebuild,
// reconcile and tidy (what the first two decide it does: see World.rebuild and reconcile).
//
// What waits for answers runs as a coroutine (iter.Pull, flow.go), so that
// virtual time passes between any two of its steps and a router can die there.
//
// In every second seed with faults a part of the AMs name hosts and racks of any member,
// as Hadoop's AMRMClient does; a third of these insist on them.
//
// With Config.Keeps a part of the applications keeps its containers over attempts
// (keep_containers_across_application_attempts), and their AMs die, some while the
// ResourceManager or the proxy of their home dies or stands still. The next attempt's AM
// goes on from the state of the one before, as Flink's does.
//
// # What goes wrong
//
// Each seed draws which of these kinds exist in it (DefaultFaults), for a seed with few
// of them gets further into each:
//
//   - messages: lost, late within their callers' patience and beyond it, served though
//     their caller has given up, served again up to five minutes later, in the order of
//     their connection or in none;
//   - ways: a site cut off both ways, one way, or from one other site;
//   - ResourceManagers, proxies, routers, nodes and the store killed, and started again;
//     routers killed before or after any step of a submission;
//   - ResourceManagers, proxies, routers and the store paused for up to 20 s, AMs too;
//     nodes with all that runs on them, and proxies, for up to 5, 20 or 90 s;
//   - a proxy that is taken for dead and goes on, at once or after a pause, beside the one
//     that is started in its place;
//   - the store failing before or after it has done what was asked, read only, failing
//     over with the loss of its last writes, emptied and rebuilt;
//   - journals on slow and full disks; a kill loses any number of the transactions that
//     were on their way to it, the latest first, and leaves of the block that was being
//     written any prefix of its bytes, with zeros or nothing behind it (journal.Image,
//     which reads them as the daemon reads its files);
//   - a ResourceManager that is taken for dead and goes on, at once or after a pause, beside
//     the one that is started in its place with its journal: it serves what lies in its
//     sockets, is a member no more, and ends when it finds that it cannot write;
//   - a ResourceManager that starts again with its clock set by up to five minutes, or has
//     it set so while it runs, both ways, and then drifts by up to 1 %. The
//     clock of each node is wrong by up to four minutes and set at any time, that of the
//     store by two. All else goes by monotonic time, and a proxy's stands still while the
//     proxy does;
//   - members of a version without fences, as Hadoop's are: they cannot disown, read no
//     claims, begin no UAM again and tell nobody their hosts; until they are started again
//     as this version;
//   - routers of a version without fences, which leave a home on a member's word of a moment
//     and name no claim, and proxies that begin no UAM again and know nobody's hosts; replaced
//     one after the other (versions.go, in the order of docs/adr/0013-fence.md or in any);
//   - members that begin to sign what they write, and then routers and proxies that believe
//     nothing else; from then on a stranger who writes members and loads without the secret;
//   - one submission through two routers at the same moment, and two routers that move
//     one home;
//   - in every second seed, waiting applications moved between members by drains and
//     because others have room, given up, and carried on by two routers at once;
//   - routers that stand still between their choice of a home and the submission, while that home is drained;
//   - users that ask routers to kill and move applications, to change their priority and to signal their
//     containers, most while an application's home is away or its move is under way;
//   - AMs that give containers back, UAMs and applications killed, applications moved,
//     members drained, queues reloaded, policies changed; applications killed that insist on
//     places of a member that took their id once, and whose UAM there has ended.
//
// # What it checks
//
// The auditor looks at what happened after each event: an application has one
// home and is played to its end once; a container is granted, started, ended
// and told once each; no node and no queue is above its limit after a grant;
// no UAM outlives its application for longer than a silent AM
// may live; and what the event changed in a ResourceManager still adds up, by
// its own rm.Auditor. A ResourceManager's time passes while it runs, whatever is done to
// its clock. Every so often, and at the end, each ResourceManager's
// own Audit runs over everything it has. Where there is a queue tree, all ResourceManagers
// together grant no more than its maxima and user limits, at any event. What an AM is told
// as headroom is there at that moment, in each queue of the member and of those maxima.
// What is acted on is durable: an answer to a
// submission, a fence or a finished AM is in the journal, a UAM that is launched or
// registered in the store. What was given back ends, what a session believes to have
// asked for its member knows, no more is granted than was asked, and what died is told.
// Where two lives of a ResourceManager go on beside each other, a container is granted by
// one of them, an AM that was told of one of the later is told of none of the earlier, an
// attempt's AM begins once, and an earlier attempt gets nothing once a later is registered.
// An AM that insists on hosts or racks is given containers nowhere else, and a member is
// asked for no place that its proxy knows to be another's.
// A container that is kept is told to the next attempt, or its end is; who keeps none is told of
// none; and no AM hears that it has kept what it was told has ended.
// What was disowned stays refused, also where an older router sends it without a claim's
// number. Of an application that such a router had, no one home is promised, and what has
// two is ended where it is not at home (statestore/reconcile). Who reads signatures believes
// no stranger, and misses no member that signs.
// What a user wants is on record until a member has done it or refused it, and a node is told of each signal
// that a ResourceManager has taken to a process that runs on.
// At the end nothing may be left: no application unfinished, no container, no session,
// no UAM record, and nothing that a user wants. Of a store that has lost acknowledged writes less is promised, and less
// is checked: auditor.forgetful says what.
package sim
