// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"encoding/json"
	"maps"
	"strings"
)

// SavedSettingsName is a property of a ResourceManager's scheduler configuration. When the agent makes queues'
// settings follow a plan, it stores their earlier values there in the same change.
const SavedSettingsName = "creel.plan.before"

// SavedSetting is a setting that follows a plan: its earlier value, "" if it was not set, and its current one.
type SavedSetting struct{ Was, Is string }

// Held returns the settings of a scheduler configuration that follow a plan, by name. An unreadable record counts as
// none.
func Held(conf map[string]string) map[string]SavedSetting {
	out := map[string]SavedSetting{}
	if json.Unmarshal([]byte(conf[SavedSettingsName]), &out) != nil {
		return nil
	}
	return out
}

// ConfiguredQueues returns a scheduler configuration as administrators wrote it, without values from a plan. If an
// administrator has since changed the setting of one child of a parent queue, he saw the current values of the
// others. So all of them count as configured.
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
