// SPDX-License-Identifier: Apache-2.0

package sched

// Explainer answers questions about the present state: the reasons why applications wait, the outcome for a node, and
// the figures of queues and applications. It only reads: no decision depends on a question.
type Explainer struct{ part *partition }

// Explain returns the explainer of all partitions.
func (s *Scheduler) Explain() Explainer { return s.main.explain() }

func (p *partition) explain() Explainer { return Explainer{p} }
