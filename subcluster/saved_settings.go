// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"encoding/json"
	"maps"
	"strings"
)

// SavedSettingsName is the property of a ResourceManager's scheduler configuration in which the agent stores, in the
// same change, the values of queues' settings before it had them follow a plan.
const SavedSettingsName = "creel.plan.before"

// SavedSetting is a setting that follows a plan: its earlier value, "" for not set, and its current one.
type SavedSetting struct{ Was, Is string }

// Held reads which settings of a scheduler configuration follow a plan, by their names.
// A record that cannot be read counts as none.
func Held(conf map[string]string) map[string]SavedSetting {
	out := map[string]SavedSetting{}
	if json.Unmarshal([]byte(conf[SavedSettingsName]), &out) != nil {
		return nil
	}
	return out
}

// ConfiguredQueues returns a scheduler configuration as administrators have written it, without the values from a
// plan. If one of the settings of queues below the same one was changed since, its author saw the others' current
// values: all of them count as configured.
func ConfiguredQueues(conf map[string]string) map[string]string {
	held, changed := Held(conf), map[string]bool{}
	for name, h := range held {
		changed[levelOf(name)] = changed[levelOf(name)] || conf[name] != h.Is
	}
	out := maps.Clone(conf)
	delete(out, SavedSettingsName)
	for name, h := range held {
		switch {
		case changed[levelOf(name)]:
		case h.Was == "":
			delete(out, name)
		default:
			out[name] = h.Was
		}
	}
	return out
}

// onLabel precedes the label in a queue's setting for nodes with one.
const onLabel = ".accessible-node-labels."

// levelOf returns the parent queue of a setting's queue, on the nodes of its label.
func levelOf(name string) string {
	label := ""
	if at := strings.LastIndex(name, onLabel); at >= 0 {
		label, _, _ = strings.Cut(name[at+len(onLabel):], ".")
		name = name[:at] + "." // the last part is the setting's own name
	}
	for range 2 {
		name = name[:max(0, strings.LastIndexByte(name, '.'))]
	}
	return name + ".." + label
}
