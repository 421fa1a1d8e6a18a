// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// HadoopConf reads and changes the configuration of a CapacityScheduler's queues.
type HadoopConf struct {
	Web  *WebPort
	User string // user of the calls, "" for its static user
}

// Read returns all properties; nil if calls cannot change them.
func (h *HadoopConf) Read(ctx context.Context) (map[string]string, error) {
	return readConf(ctx, h.Web, h.User)
}

// Change sets all these properties, or none; an empty value removes one.
func (h *HadoopConf) Change(ctx context.Context, to map[string]string) error {
	code, answer, err := callConf(ctx, h.Web, http.MethodPut, h.User, changeOf(to))
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("it refused to change its queues: %d %.300s", code, bytes.TrimSpace(answer))
	}
	return err
}

// changeOf groups properties of queues by path, and other properties by name.
func changeOf(to map[string]string) (order SchedulerConfChange) {
	for _, name := range slices.Sorted(maps.Keys(to)) {
		queue, ok := strings.CutPrefix(name, "yarn.scheduler.capacity.")
		if at := strings.LastIndexByte(queue, '.'); ok && at > 0 {
			order.Update = Set(order.Update, queue[:at], queue[at+1:], to[name])
			continue
		}
		if order.Global == nil {
			order.Global = &Params{}
		}
		order.Global.Entry = append(order.Global.Entry, QueueParam{name, to[name]})
	}
	return order
}
