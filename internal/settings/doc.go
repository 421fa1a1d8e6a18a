// SPDX-License-Identifier: Apache-2.0

// Package settings is the registry of all settings: each setting's name, type, default and description, and the
// source of the value in force.
//
// Sources, later wins:
//
//  1. the defaults built into the registry,
//  2. the XML files of a configuration directory: core-site.xml, then hdfs-site.xml and yarn-site.xml, with Hadoop's
//     semantics (final, ${var}, XInclude, deprecated names); of mapred-site.xml the history server's principal,
//  3. -D key=value,
//  4. flags.
//
// If YARN has a key, the setting uses YARN's key, meaning and default. So one directory configures both Hadoop and
// creel. The one exception is the host that daemons bind by default: creel's default is loopback. Settings without a
// key in YARN are creel.*.
//
// A daemon starts with
//
//	s, err := settings.Load(settings.Sources{ConfDir: dir, Defines: d, Flags: f})
//
// which reports all errors at once, each with file, line and the nearest right name. The daemon reads its values by
// their key:
//
//	s.Address("yarn.resourcemanager.address")
//	s.Duration("yarn.nm.liveness-monitor.expiry-interval-ms")
//
// A getter panics if the registry lacks the key, or defines it with another type. That is a mistake in the program, not
// in a user's file. Load checked the values, so a getter never fails otherwise.
//
// The queues are configured in separate files, capacity-scheduler.xml and fair-scheduler.xml. This package returns
// their properties uninterpreted (CapacityScheduler, FairSchedulerFile), because the scheduler defines their meaning.
//
// The package imports no other package of creel: packages use plain Config structs and do not depend on it.
package settings
