// SPDX-License-Identifier: Apache-2.0

package role

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/subcluster/rm/queueconf"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// schedulerName is the class of the scheduler without its package.
func schedulerName(s *settings.Settings) string {
	class := s.String("yarn.resourcemanager.scheduler.class")
	return class[strings.LastIndexByte(class, '.')+1:]
}

func fairScheduler(s *settings.Settings) bool {
	return schedulerName(s) == "FairScheduler"
}

// increment is the step to which FairScheduler rounds allocations: by default 1024 MiB, 1 vcore, and 1 of any other
// type. The key of the type overrides the older keys of memory and vcores.
func increment(s *settings.Settings, types []creel.ResourceType) (creel.Resource, error) {
	step := creel.NewResource(
		s.Long("yarn.scheduler.increment-allocation-mb"),
		s.Long("yarn.scheduler.increment-allocation-vcores"),
	)
	for _, t := range append(
		[]creel.ResourceType{{Name: creel.MemoryName, Unit: "Mi"}, {Name: creel.VCoresName}},
		types...,
	) {
		v, ok := s.Lookup("yarn.resource-types." + t.Name + ".increment-allocation")
		if !ok {
			continue
		}
		n, err := queueconf.ParseAmount(v.Text, t)
		if err != nil {
			return step, s.Problem(v.Key, err.Error(),
				fmt.Sprintf("give a whole number, with a unit if not in %q", t.Unit))
		}
		step = step.With(t.Name, n)
	}
	return step, nil
}

// queueOptions reads the queue options of the site files.
func queueOptions(s *settings.Settings) queueconf.Options {
	opt := queueconf.Options{
		MaxAllocation: creel.NewResource(
			s.Long("yarn.scheduler.maximum-allocation-mb"),
			s.Long("yarn.scheduler.maximum-allocation-vcores"),
		),
		MaxClusterPriority: int32(s.Int("yarn.cluster.max-application-priority")),
		WorkflowTag:        s.String("yarn.workflow-id.tag-prefix"),
		Fair: queueconf.FairOptions{
			UserAsDefaultQueue:    s.Bool("yarn.scheduler.fair.user-as-default-queue"),
			AllowUndeclaredPools:  s.Bool("yarn.scheduler.fair.allow-undeclared-pools"),
			SizeBasedWeight:       s.Bool("yarn.scheduler.fair.sizebasedweight"),
			NodeLocalityThreshold: s.Float("yarn.scheduler.fair.locality.threshold.node"),
			RackLocalityThreshold: s.Float("yarn.scheduler.fair.locality.threshold.rack"),
		},
	}
	opt.ResourceTypes = resourceTypes(s)
	return opt
}

// QueueConfig reads the configured scheduler's queue file.
func QueueConfig(s *settings.Settings, reload bool) (queueconf.Config, error) {
	if fairScheduler(s) {
		path, data, err := s.FairSchedulerFile()
		if err != nil {
			return queueconf.Config{}, err
		}
		return withSettings(s, nil)(queueconf.ReadFair(path, data, queueOptions(s)))
	}
	read := s.CapacityScheduler
	if reload {
		read = s.ReloadCapacityScheduler
	}
	found, err := read()
	if err != nil {
		return queueconf.Config{}, err
	}
	return capacityQueues(s, found)
}

// capacityQueues makes queues from properties.
func capacityQueues(s *settings.Settings, found []settings.Property) (queueconf.Config, error) {
	opt := queueOptions(s)
	props := make([]queueconf.Property, len(found))
	for i, p := range found {
		props[i] = queueconf.Property{Name: p.Name, Value: p.Value, File: p.File, Line: p.Line}
		if p.Name == "yarn.scheduler.capacity.mapping-rule-json-file" && p.Value != "" {
			path := p.Value
			if !filepath.IsAbs(path) {
				path = filepath.Join(s.Dir(), path)
			}
			var err error
			if opt.MappingRules, err = os.ReadFile(path); err != nil {
				return queueconf.Config{}, fmt.Errorf("%s: %s: %w", p.Where(), p.Name, err)
			}
		}
	}
	return withSettings(s, found)(queueconf.ReadCapacity(props, opt))
}

// mutationPolicy is the last part of the name of the class that decides which users may change queues.
func mutationPolicy(s *settings.Settings) string {
	class := s.String("yarn.scheduler.configuration.mutation.acl-policy.class")
	return class[strings.LastIndexByte(class, '.')+1:]
}

// mutableQueues returns how API calls change the queues; nil if queues come from files only.
func mutableQueues(s *settings.Settings) *server.MutableQueues {
	store, history := s.String("yarn.scheduler.configuration.store.class"),
		s.Int("yarn.scheduler.configuration.store.max-logs")
	if store == "file" || fairScheduler(s) {
		return nil
	}
	return &server.MutableQueues{
		Kept:        store == "fs",
		QueueAdmins: mutationPolicy(s) == "QueueAdminConfigurationMutationACLPolicy",
		History:     history,
		File: func() (map[string]string, error) {
			found, err := s.ReloadCapacityScheduler()
			out := make(map[string]string, len(found))
			for _, p := range found {
				out[p.Name] = p.Value
			}
			return out, err
		},
		Parse: func(values map[string]string) (server.Queues, error) {
			found := make([]settings.Property, 0, len(values))
			for _, name := range slices.Sorted(maps.Keys(values)) {
				found = append(found, settings.Property{Name: name, Value: values[name]})
			}
			q, err := capacityQueues(s, found)
			return server.Queues{Spec: q.Queues, Placement: q.Placement}, err
		},
	}
}
