// SPDX-License-Identifier: Apache-2.0

// Package ways plays one day of jobs on one cluster by several ways to give containers to tasks, and compares them.
//
// # Ways
//
//   - heartbeat: a model of Hadoop's ResourceManager, which assigns containers at heartbeats of nodes. An AM receives
//     them at its next heartbeat.
//   - push: creel's ResourceManager (subcluster/rm) and nodes (subcluster/nm), guaranteed containers only.
//   - mercury: a model of Mercury. AMs place short tasks in queues of a fixed length at the nodes, on a list of the
//     least loaded ones. Long tasks get guaranteed containers as in heartbeat.
//   - yaq-c: a model of Yaq's central scheduler. It places all tasks in bounded queues, on the node with the least
//     expected wait. Nodes order their queues by the remaining work of jobs, and pass no task that waits for long.
//   - yaq-c-prompt: the same, with the grants in the answer to the call that asks.
//   - batch: a model of Sparrow's batch sampling with late binding.
//   - ours: creel's ResourceManager and nodes. Short tasks are opportunistic containers, placed on the least filled
//     node, and long ones guaranteed.
//   - ours-random: the same with Hadoop's placement, on a random one of the least loaded nodes.
//   - alone: ours on the long jobs only. It is the control of the guaranteed containers' wait.
//
// push, ours, ours-random and alone run the state machines of the daemons. The others are models: they have the
// decisions of their papers, without failures, localities or sizes. yaq-c and batch know no guaranteed containers.
//
// # Promises
//
// The same Cluster, Day and seed produce the same Result. All ways have the same nodes, jobs, times of heartbeats and
// delays of messages. AMs take no room, as unmanaged AMs. A Result says whether the way broke a rule: each task ends
// once, and no node runs more containers than it has slots.
//
// The caller provides a Day with its jobs in the order of their submissions.
package ways
