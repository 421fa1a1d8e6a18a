// SPDX-License-Identifier: Apache-2.0

package role

import (
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/subcluster/rm/queueconf"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

const (
	monitor       = "yarn.resourcemanager.monitor.capacity.preemption."
	monitorEnable = "yarn.resourcemanager.scheduler.monitor.enable"
)

// fairInterval is how often FairScheduler checks for starved queues: Hadoop's default of
// yarn.scheduler.fair.update-interval-ms.
const fairInterval = 500 * time.Millisecond

// preemptionConfig returns the configuration of preemption for the configured scheduler.
func preemptionConfig(s *settings.Settings, file []settings.Property) (queues.Preemption, error) {
	f := overrides{s: s, file: map[string]settings.Property{}}
	for _, p := range file {
		if strings.HasPrefix(p.Name, monitor) || p.Name == monitorEnable {
			f.file[p.Name] = p
		}
	}
	policies := s.String("yarn.resourcemanager.scheduler.monitor.policies")
	p := queues.Preemption{
		// As in Hadoop the site files start the monitor; a queue file with "false" disables preemption for every
		// queue.
		On: s.Bool(monitorEnable) && f.flag(monitorEnable) &&
			strings.Contains(policies, "ProportionalCapacityPreemptionPolicy"),
		ObserveOnly:          f.flag(monitor + "observe_only"),
		Interval:             f.time(monitor + "monitoring_interval"),
		Wait:                 f.time(monitor + "max_wait_before_kill"),
		PerRound:             f.number(monitor + "total_preemption_per_round"),
		IgnoredOver:          f.number(monitor + "max_ignored_over_capacity"),
		Termination:          f.number(monitor + "natural_termination_factor"),
		ConservativeDRF:      f.flag(monitor + "conservative-drf"),
		IntraQueue:           f.flag(monitor + "intra-queue-preemption.enabled"),
		IntraFrom:            f.number(monitor + "intra-queue-preemption.minimum-threshold"),
		IntraMost:            f.number(monitor + "intra-queue-preemption.max-allowable-limit"),
		IntraConservativeDRF: f.flag(monitor + "intra-queue-preemption.conservative-drf"),
		ReservedFirst:        f.flag(monitor + "select_based_on_reserved_containers"),
		ReservedTwice:        f.flag(monitor + "additional_res_balance_based_on_reserved_containers"),
		Balance:              f.flag(monitor + "preemption-to-balance-queue-after-satisfied.enabled"),
		BalanceWait:          f.time(monitor + "preemption-to-balance-queue-after-satisfied.max-wait-before-kill"),
		Utilization:          s.Float("yarn.scheduler.fair.preemption.cluster-utilization-threshold"),
	}
	if f.text(monitor+"intra-queue-preemption.preemption-order-policy") == "priority_first" {
		p.IntraFirst = queues.IntraPriorityFirst
	}
	fairOn, fairWait := s.Bool("yarn.scheduler.fair.preemption"), s.Duration("yarn.scheduler.fair.waitTimeBeforeKill")
	if fairScheduler(s) {
		p.On, p.ObserveOnly, p.IntraQueue = fairOn, false, false
		p.ReservedFirst, p.ReservedTwice, p.Balance = false, false, false
		p.Interval, p.Wait, p.Termination = fairInterval, fairWait, 1
	}
	return p, f.err
}

// overrides reads settings that the queue file may override.
type overrides struct {
	s    *settings.Settings
	file map[string]settings.Property
	err  error
}

func (f *overrides) read(key string, parse func(string) error) {
	p, ok := f.file[key]
	if !ok {
		return
	}
	if err := parse(strings.TrimSpace(p.Value)); err != nil && f.err == nil {
		f.err = &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: p.Where() + ": " + p.Name + ": " + strconv.Quote(p.Value) + " cannot be read",
			Try:  "write it as creel config explain " + p.Name + " says",
		}
	}
}

func (f *overrides) flag(key string) bool {
	v := f.s.Bool(key)
	f.read(key, func(text string) (err error) { v, err = strconv.ParseBool(text); return err })
	return v
}

func (f *overrides) number(key string) float64 {
	v := f.s.Float(key)
	f.read(key, func(text string) (err error) { v, err = strconv.ParseFloat(text, 64); return err })
	return v
}

func (f *overrides) time(key string) time.Duration {
	v := f.s.Duration(key)
	f.read(key, func(text string) error {
		ms, err := strconv.ParseInt(text, 10, 64)
		v = time.Duration(ms) * time.Millisecond
		return err
	})
	return v
}

func (f *overrides) text(key string) string {
	v := f.s.String(key)
	f.read(key, func(text string) error { v = text; return nil })
	return v
}

// victimsOf sets the containers that queues lose first, from creel.scheduler.QUEUE.preemption.victims in the site
// files. CapacityScheduler's own setting comes from the queue file.
func victimsOf(s *settings.Settings, file []settings.Property, q *queues.Queue, path string) {
	key := "creel.scheduler." + path + ".preemption.victims"
	text := ""
	for _, v := range s.Matching("creel.scheduler.**.preemption.victims") {
		if v.Key == key {
			text = v.Text
		}
	}
	for _, p := range file {
		if p.Name == key {
			text = strings.TrimSpace(p.Value)
		}
	}
	switch text {
	case "newest":
		q.Victims = queues.Newest
	case "least-work":
		q.Victims = queues.LeastWork
	}
	for i := range q.Children {
		victimsOf(s, file, &q.Children[i], path+"."+q.Children[i].Name)
	}
}

// withSettings adds the effects of other settings to a parsed queue file: preemption and node order.
func withSettings(
	s *settings.Settings, file []settings.Property,
) func(queueconf.Config, error) (queueconf.Config, error) {
	return func(q queueconf.Config, err error) (queueconf.Config, error) {
		if err != nil {
			return q, err
		}
		pack, root := s.String("creel.rm.node-order") == "pack", &q.Queues.Root
		if pack && root.NodeOrder == queues.NodeOrderDefault {
			root.NodeOrder = queues.Pack
		}
		victimsOf(s, file, &q.Queues.Root, "root")
		q.Queues.Preemption, err = preemptionConfig(s, file)
		return q, err
	}
}
