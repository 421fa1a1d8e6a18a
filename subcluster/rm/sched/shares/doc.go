// SPDX-License-Identifier: Apache-2.0

// Package shares divides an amount of one resource type among the children of a queue, in Hadoop's two ways. Divide
// follows CapacityScheduler: absolute amounts, percentages and weights beside each other, in the configured order.
// Level follows FairScheduler: by weight, within minimum and maximum. Both round as Hadoop does, to the unit, so the
// order of their floating-point operations matters.
package shares
