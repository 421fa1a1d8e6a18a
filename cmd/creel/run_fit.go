// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router/rest"
)

// fits rejects containers that no member could ever run: they would wait without end. A server that does not answer
// the question decides at the submission.
func (f *runFlags) fits(ctx context.Context) error {
	for _, ask := range []struct {
		flag          string
		memory, cores int64
	}{{"--memory", f.spec.MemoryMB, f.spec.VCores}, {"--am-memory", f.amMemory, 1}} {
		var doc rest.FitDoc
		_, err := f.call(ctx, http.MethodGet, "/api/v1/fit", url.Values{
			"queue": {f.queue}, "memory_mb": {strconv.FormatInt(ask.memory, 10)},
			"vcores": {strconv.FormatInt(ask.cores, 10)},
		}, nil, &doc)
		if err != nil || doc.Fits || len(doc.Members) == 0 {
			continue
		}
		var members []string
		best := rest.Size{}
		for _, m := range doc.Members {
			text := fmt.Sprintf("%s: largest node %s", m.ID, sizeText(m.Largest))
			runs := m.Largest
			if m.Limit != nil {
				text += ", limit of the queue " + sizeText(*m.Limit)
				runs = rest.Size{
					MemoryMB: min(runs.MemoryMB, m.Limit.MemoryMB), VCores: min(runs.VCores, m.Limit.VCores),
				}
			}
			members = append(members, text)
			if runs.MemoryMB > best.MemoryMB || runs.MemoryMB == best.MemoryMB && runs.VCores > best.VCores {
				best = runs
			}
		}
		return usage(&creel.Error{
			Kind: creel.ErrInvalidResource,
			What: fmt.Sprintf("no member can run a container of %s in %s",
				sizeText(rest.Size{MemoryMB: ask.memory, VCores: ask.cores}), f.queue),
			Why: strings.Join(members, "; "),
			Try: fmt.Sprintf("ask for at most %s (%s, --vcores), or another queue", sizeText(best), ask.flag),
		})
	}
	return nil
}

func sizeText(s rest.Size) string { return fmt.Sprintf("%d MiB, %d vcores", s.MemoryMB, s.VCores) }
