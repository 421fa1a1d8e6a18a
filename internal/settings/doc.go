// SPDX-License-Identifier: Apache-2.0

// Package settings is the one registry of everything that can be set: each
// setting's name, type, default and sentence, and where the value in force
// came from.
//
// Sources, later wins:
//
//  1. the defaults built into the registry,
//  2. the XML files of a configuration directory: core-site.xml, then
//     yarn-site.xml, with Hadoop's semantics (final, ${var}, XInclude,
//     deprecated names),
//  3. -D key=value,
//  4. flags.
//
// Where YARN has a key, it is YARN's key with YARN's meaning and default, so
// one directory configures Hadoop and creel alike; the one exception is the
// host that daemons bind when nobody says otherwise, which is loopback. What
// YARN has no key for is creel.*.
//
// A daemon starts with
//
//	s, err := settings.Load(settings.Sources{ConfDir: dir, Defines: d, Flags: f})
//
// which reports everything that is wrong at once, each with file, line and the
// nearest right name, and reads its values by their key:
//
//	s.Address("yarn.resourcemanager.address")
//	s.Duration("yarn.nm.liveness-monitor.expiry-interval-ms")
//
// A getter called with a key that is not in the registry, or of another type,
// panics: that is a mistake in the program, not in somebody's file. Values were
// checked by Load, so a getter never fails.
//
// The queues live in files of their own, capacity-scheduler.xml and
// fair-scheduler.xml; this package hands them on unread (CapacityScheduler,
// FairSchedulerFile), because what they mean belongs to the scheduler.
//
// The package imports nothing of creel's: packages keep plain Config structs and
// do not know it.
package settings
