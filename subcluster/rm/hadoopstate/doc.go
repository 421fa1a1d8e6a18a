// SPDX-License-Identifier: Apache-2.0

// Package hadoopstate reads and writes the state that Hadoop's ResourceManager keeps in ZooKeeper (ZKRMStateStore of
// Hadoop 3.3 and 3.4), so that an application continues under the other implementation.
//
// # Nodes
//
//	PARENT/ZKRMStateRoot
//	  RMVersionNode                              VersionProto: 1.5
//	  EpochNode                                  EpochProto: the epoch of the next start
//	  RMAppRoot/APPLICATION/ATTEMPT              ApplicationStateDataProto, ApplicationAttemptStateDataProto
//	  RMAppRoot/HIERARCHIES/N/APPLICATI/ON/ATTEMPT  the same with the last N characters split off, N is 1 to 4
//	  RMDTSecretManagerRoot/RMDTSequentialNumber 4 bytes
//	  RMDTSecretManagerRoot/RMDelegationTokensRoot/RMDelegationToken_NUMBER, or split as applications are
//	  RMDTSecretManagerRoot/RMDTMasterKeysRoot/DelegationKey_NUMBER
//	  AMRMTokenSecretManagerRoot                 the current and the next master key
//	  ReservationSystemRoot/PLAN/RESERVATION     counted only
//
// # Promises
//
//  1. Read changes nothing. It fails if a ResourceManager wrote the state meanwhile: each of Hadoop's writes makes and
//     deletes a child of the root.
//  2. Read fails, and names the node, if a record cannot be read. A state is bounded by maxNodes and maxBytes.
//  3. Write needs a path without a state. Hadoop's ResourceManager does not start on a part of a state, because the
//     version, which is written last, is one that it refuses until then. A repetition removes the part.
//  4. Write splits lists that ZooKeeper could not return. Hadoop's ResourceManager reads each split.
//  5. Portable and FromPortable convert a state without losing an application, an attempt, a token or a key that is
//     still accepted. Messages are shared, so fields that creel does not know survive.
//  6. With Beside, the records are those of creel's entries after each transaction, and the entries are those of the
//     records after Hadoop's ResourceManager has led.
//
// # The caller's duty
//
// For Read and Write, the ResourceManagers of both states are stopped, and only one of them is started again.
package hadoopstate
