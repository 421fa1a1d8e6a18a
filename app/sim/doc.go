// SPDX-License-Identifier: Apache-2.0

// Package sim runs a whole federation in virtual time, on the code of the daemons. It runs the ResourceManagers' and
// NodeManagers' state machines, the proxies' sessions, the routers' submission core, the policies and the state
// store. These use no goroutine, clock or socket, so the same Config produces the same events, byte for byte, and a
// seed reproduces a failure.
//
// # Parts
//
// World is an event heap and a random source. A host (a ResourceManager, a node, a proxy, a router, the store, a
// client) can be up or down and be cut off from others. call carries a request between two hosts and the answer back:
// late, twice or never, as the faults decide. Around each state machine is the driver that performs its actions. The
// daemons run the same code for:
//
//   - the proxy (amrmproxy.Driver, Recording, LaunchUAM, DropUAM);
//   - the ResourceManager's turn, its journal's records and the start of AMs (subcluster/rm/turn);
//   - the translation of messages and the creation of tokens (subcluster/rm/codec);
//   - a node's pace and its authorization of callers (subcluster/nm);
//   - enrollment as a member (subcluster.Enrollment, in every second seed with faults; in the others a process
//     has its epoch at its start);
//   - the consequences of a read of the store (subcluster.Observer);
//   - publishing hosts and following the publications (resolver.PublisherState, FollowerState);
//   - the router's submission, its home cache and assumed load (package router);
//   - federation-wide maxima and user limits (subcluster/member.Keeper);
//   - following a plan with capacities and preemption budgets (Follower there);
//   - planning, dividing maxima and auditing (Leader there);
//   - when a plan is read, by proxies in part (statestore/watch.PlanReader);
//   - users' requests to unavailable members, stored until members carry them out (statestore/intents).
//
// A message between two hosts is the protobuf of the network protocol.
//
// With a rebalancer or a queue tree, times are the daemons' defaults. Then members report large changes at their next
// check (codec.Loads.Changed), and the leader plans after these at its own next check. The store notifies routers and
// proxies of writes (statestore/watch.Hears). Otherwise the reports are not used: members report only in their
// heartbeats, and processes poll.
//
// The simulator's own parts are the event heap, the network, faults, clients and AMs, the auditor, and the loops that
// post and perform. Not simulated are: resuming a subscription of the store, a queue tree in percent of members that
// come and go, rolling master keys, the proxy's check of an AM's token, queries to routers for an application's home,
// and the loops of statestore/rebuild, reconcile and tidy (the decisions of the first two are simulated: see
// World.rebuild and reconcile).
//
// Code that waits for answers runs as a coroutine (iter.Pull, flow.go), so that virtual time passes between its steps
// and a router can die between them.
//
// In every second seed with faults, some AMs name hosts and racks of any member, like Hadoop's AMRMClient; a third of
// these accept no others.
//
// With Config.Keeps, some applications retain their containers over attempts
// (keep_containers_across_application_attempts). Their AMs die, some of them while the ResourceManager or the proxy
// of their home is dead or paused. The next attempt's AM continues from the previous one's state, as Flink's does.
//
// With Config.Opportunistic, AMs ask for a fraction of their containers as opportunistic ones, and promote some. Nodes
// queue, start, pause and kill them by the daemon's machine (package opportune has the drawn configuration). With
// Config.Distributed, proxies place them: members publish the keys of their nodes, and proxies read them late.
//
// With Config.Overcommit, nodes measure what their containers use, and lend what is allocated and not used (package
// overcommit draws the use and checks nodes). Under faults all containers use more of their size at some times.
//
// # Faults
//
// Each seed draws the kinds of its faults (DefaultFaults), because a seed with few kinds gets further into the
// effects of each:
//
//   - messages: lost, late within their callers' patience and beyond it, served after their caller timed out, served
//     again up to five minutes later, in the order of their connection or in none;
//   - network paths: a site cut off both ways, one way, or from one other site;
//   - ResourceManagers, proxies, routers, nodes and the store killed and restarted; routers killed before or after
//     any step of a submission;
//   - ResourceManagers, proxies, routers, AMs and the store paused for up to 20 s; nodes with all their processes,
//     and proxies, for up to 5, 20 or 90 s;
//   - a proxy that is presumed dead and continues, at once or after a pause, while its replacement runs;
//   - the store failing before or after it has executed a call, read only, failing over with the loss of its last
//     writes, emptied or taken back by minutes and rebuilt;
//   - journals on slow and full disks; a kill loses any number of the transactions in flight to the disk, the latest
//     first, and leaves any prefix of the block that was being written, with zeros or nothing behind it
//     (journal.Image, which reads them as the daemon reads its files);
//   - a ResourceManager that is presumed dead and continues, at once or after a pause, while its replacement runs with
//     its journal: it serves the requests in its sockets, is no longer a member, and ends when it notices that it
//     cannot write;
//   - a ResourceManager whose clock is changed by up to five minutes, at a restart or while it runs, in either
//     direction, and then drifts by up to 1 %. The clock of each node is wrong by up to four minutes and set at any
//     time, the store's by two. All other hosts use monotonic time, and a proxy's clock stops while the proxy is
//     paused;
//   - members of a version without fences, like Hadoop's: they cannot disown, ignore claims, do not restart a UAM
//     and publish no hosts, until they restart as this version;
//   - routers of a version without fences, which leave a home after one reply of a member and name no claim, and
//     proxies that do not restart a UAM and know no hosts; replaced one after the other (versions.go, in the
//     order of docs/adr/0013-fence.md or in any order);
//   - members that start to sign their records, and then routers and proxies that accept only signed ones; after
//     that a process without the secret writes members and loads;
//   - one submission through two routers at the same moment, and two routers that move one home;
//   - in every second seed, waiting applications moved between members by drains and to members with free capacity,
//     abandoned, and continued by two routers at once;
//   - routers that pause between their choice of a home and the submission, while that home is drained;
//   - users that ask routers to kill and move applications, to change their priority and to signal their containers,
//     mostly while an application's home is unavailable or its move is in progress;
//   - AMs that release containers, UAMs and applications killed, applications moved, members drained, queues
//     reloaded, policies changed; applications killed that accept only places of a member that accepted their id once
//     and whose UAM there has ended;
//   - with opportunistic containers: nodes with a queue and ResourceManagers of such nodes killed, and answers with
//     promotions lost.
//
// # Checks
//
// The auditor checks these invariants after each event:
//
//   - An application has one home and completes once.
//   - A container is granted, started, ended and reported once each.
//   - No node and no queue is above its limit after a grant.
//   - No UAM exists for longer after its application's end than a silent AM may live.
//   - The state that the event changed in a ResourceManager is consistent, by rm.Auditor. At intervals, and at the
//     end, each ResourceManager's Audit checks its whole state.
//   - Nothing happens to a container long after its application's end. By then the world has checked that end and
//     forgotten the application's containers and AMs (auditor.forget).
//   - A ResourceManager's time passes while it runs, whatever happens to its clock.
//   - With a queue tree, all ResourceManagers together never grant more than its maxima and user limits.
//   - The headroom reported to an AM is available at that moment, in each queue of the member and within those
//     maxima.
//   - Every acknowledged fact is durable: an answer to a submission, a fence or a finished AM is in the journal, a
//     launched or registered UAM in the store.
//   - A released container ends. A session's asks are known to its member. Grants do not exceed asks. Completions are
//     reported.
//   - Of two epochs of a ResourceManager that run at the same time, one grants a container. An AM that received a
//     container of the later epoch receives none of the earlier. An attempt's AM begins once, and an earlier attempt
//     receives nothing once a later one is registered.
//   - An AM that insists on hosts or racks gets containers only there, and a member is not asked for a place that its
//     proxy knows to be another's.
//   - A retained container, or its completion, is reported to the next attempt. An AM that retains none is told of
//     none, and no AM is told that it retained a container whose completion it knows.
//   - An AM receives no more containers of an execution type than it asks for. A node starts nothing that it has ended,
//     and no opportunistic container while a guaranteed one waits. A guaranteed container waits only for guaranteed
//     ones. Opportunistic containers count in no queue's use. The end of a container for another one, and a promotion,
//     reach the AM. Proxies give no id to two containers, and a member refuses a reported one only because its node or
//     its application has ended, or because the proxy has not read the keys of the member's new start.
//   - A node lends no more than the use up to which it may lend. While its use is too high, it ends the youngest lent
//     containers, and all of them if the others use their whole size. No guaranteed container ends for a lent one or
//     waits for long while lent ones run. A promotion reaches the node.
//   - A disowned application stays refused, even if an older router submits it without a claim number. If such a
//     router handled an application, it may have two homes; the wrong run is ended (statestore/reconcile).
//   - A process that verifies signatures accepts no unsigned member, and misses no signed one.
//   - A user's request is recorded until a member has carried it out or rejected it. Each signal that a
//     ResourceManager accepted for a running process reaches the node.
//
// At the end nothing may be left: no unfinished application, no container, no session, no UAM record, and no user's
// request. After a store lost acknowledged writes, less is promised and checked: see auditor.forgetful.
package sim
