// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
)

// maxEndings bounds the encoded reports that are kept, in bytes; each counts for
// the view that stays with it too.
const (
	maxEndings = 32 << 20
	endingView = 1 << 10
)

// listedApp is an application in a list; viewable says whether who asks may see
// all of it.
type listedApp struct {
	view     *rm.AppView
	viewable bool
}

// endings are the encoded reports of applications that are over. A
// ResourceManager remembers thousands, a long list is mostly of such, and it is
// made anew whenever any application changes.
type endings struct {
	mu    sync.RWMutex
	m     map[listedApp][]byte
	bytes int
}

// applicationsField is the number of GetApplicationsResponseProto's field.
const applicationsField protowire.Number = 1

// list encodes a GetApplicationsResponseProto of these.
func (e *endings) list(found []listedApp, report func(listedApp) *pb.ApplicationReportProto) ([]byte, error) {
	reports := make([][]byte, len(found))
	e.mu.RLock()
	for i, a := range found {
		if a.view.Over {
			reports[i] = e.m[a]
		}
	}
	e.mu.RUnlock()
	size := 0
	var fresh []int // places of those that were not kept and can be
	for i, a := range found {
		if reports[i] == nil {
			body, err := report(a).MarshalVT()
			if err != nil {
				return nil, err
			}
			reports[i] = body
			if a.view.Over {
				fresh = append(fresh, i)
			}
		}
		size += protowire.SizeTag(applicationsField) + protowire.SizeBytes(len(reports[i]))
	}
	body := make([]byte, 0, size)
	for _, r := range reports {
		body = protowire.AppendBytes(protowire.AppendTag(body, applicationsField, protowire.BytesType), r)
	}
	e.keep(found, reports, fresh)
	return body, nil
}

func (e *endings) keep(found []listedApp, reports [][]byte, places []int) {
	if len(places) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, i := range places {
		if e.m == nil || e.bytes+endingView+len(reports[i]) > maxEndings {
			e.m, e.bytes = map[listedApp][]byte{}, 0 // those that are still listedApp come back
		}
		if _, ok := e.m[found[i]]; !ok {
			e.m[found[i]] = reports[i]
			e.bytes += endingView + len(reports[i])
		}
	}
}
