// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
	"github.com/creelrm/creel/subcluster/rm/sched/places"
)

// Asks returns an application's outstanding asks, in order.
func (a *App) Asks() []explain.AskView {
	var out []explain.AskView
	if am := a.am; am != nil && a.amSize != nil && a.pendSlot != 0 { // in line: not asked for yet
		v := explain.AskView{
			Priority: am.Priority, AllocationRequestID: -1, ExecutionType: creel.Guaranteed, ResourceName: AnyPlace,
			Resource: a.amSize.Resource, Count: 1, Relax: !am.Strict, Label: am.Label,
		}
		out = append(out, v)
		for _, p := range am.Places {
			v.ResourceName, v.Relax = p.Name, !p.Strict
			out = append(out, v)
		}
	}
	for _, w := range a.asks {
		out = append(out, w.view())
		for _, list := range [][]*places.Place[Node]{w.named.Racks, w.named.Hosts} {
			for _, p := range list {
				v := w.view()
				v.ResourceName, v.Count, v.Relax = p.Name, p.Count, !p.Strict
				out = append(out, v)
			}
		}
	}
	for _, x := range a.parts {
		out = append(out, x.Asks()...)
	}
	return out
}

func (w *Ask) view() explain.AskView {
	v := explain.AskView{
		Priority:            w.priority,
		AllocationRequestID: w.alloc,
		ExecutionType:       w.execution,
		ResourceName:        AnyPlace,
		Count:               w.count,
		Relax:               !w.strict,
		Label:               w.app.label(),
	}
	if w.size != nil {
		v.Resource = w.size.Resource
	}
	if w.want != nil {
		v.Tags = w.want.Tags
		if c := w.want.Constraint; c != nil {
			v.Constraint = c.String()
		}
	}
	return v
}
