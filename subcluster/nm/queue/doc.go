// SPDX-License-Identifier: Apache-2.0

// Package queue decides which containers of a node run: YARN's ContainerScheduler without threads. Guaranteed
// containers start before opportunistic ones. A guaranteed container that does not fit takes the resources of running
// opportunistic containers, the last started first.
//
// The caller reports events of its containers (Arrive, Remove, Paused, Resize, Retype, Shed, SetTotal). After each
// event it carries out the decisions of Settle, until Settle returns none. Containers that are still localizing are
// not known here.
//
// The scheduler differs from Hadoop's in two points. Hadoop starts waiting containers only after an arrival and after
// the end of a running container; here they start after every event that makes them fit. A guaranteed container that
// pauses, or that is promoted, is treated like one that arrives.
//
// Config.Adaptive, Config.ByWork and Config.Estimates are rules that Hadoop does not have.
package queue
