// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"encoding/json"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

// feeds are the kinds of change that have a node: its data is the last change, and its version counts them.
var feeds = []statestore.ChangeKind{
	statestore.ChangeMembers, statestore.ChangePolicies, statestore.ChangeKeys, statestore.ChangeDocuments,
	statestore.ChangeHome,
}

// announced is a change as it is stored.
type announced struct {
	Version     int64  `json:"version,omitempty"`
	Class       string `json:"class,omitempty"`
	Application string `json:"application,omitempty"`
}

// announcement is the operation that announces a change.
func (s *engine) announcement(c statestore.Change) Op {
	a := announced{Version: c.Version, Class: c.Class}
	if !c.Application.IsZero() {
		a.Application = c.Application.String()
	}
	return Op{Kind: OpSet, Path: s.paths.feed + "/" + string(c.Kind), Data: jsonOf(a), Version: AnyVersion}
}

// Watch implements statestore.Watch. The system reports that a node changed, not each change: a slow reader receives a
// ChangeResync for those that it missed. Changes by Hadoop's programs are not announced.
func (s *Store) Watch(ctx context.Context, notify func(statestore.Change)) error {
	changes := make(chan statestore.Change)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready := make(chan struct{}, len(feeds))
	for _, kind := range feeds {
		go func() {
			s.follow(ctx, kind, ready, changes)
			ready <- struct{}{} // has ended
		}()
	}
	for range feeds {
		<-ready // watches; later it ends
	}
	if ctx.Err() == nil {
		notify(statestore.Change{Kind: statestore.ChangeResync})
	}
	for ended := 0; ended < len(feeds); {
		select {
		case c := <-changes:
			notify(c)
		case <-ready:
			ended++
		}
	}
	return nil
}

// follow passes on the changes of one kind until the context ends. It reports on ready when it has begun.
func (s *engine) follow(
	ctx context.Context, kind statestore.ChangeKind, ready chan<- struct{}, changes chan<- statestore.Change,
) {
	send := func(c statestore.Change) {
		select {
		case changes <- c:
		case <-ctx.Done():
		}
	}
	seen, begun := int64(0), false
	for ctx.Err() == nil {
		data, stat, changed, err := s.watchFeed(ctx, kind)
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		switch {
		case !begun:
			begun = true
			ready <- struct{}{}
		case stat.Version == seen+1:
			send(changeOf(kind, data))
		case stat.Version != seen:
			send(statestore.Change{Kind: statestore.ChangeResync})
		}
		seen = stat.Version
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	if !begun {
		ready <- struct{}{}
	}
}

func (s *engine) watchFeed(ctx context.Context, kind statestore.ChangeKind) ([]byte, *Stat, <-chan struct{}, error) {
	if err := s.prepare(ctx); err != nil {
		return nil, nil, nil, err
	}
	return s.tree.Watch(ctx, s.paths.feed+"/"+string(kind))
}

// changeOf reads an announced change.
func changeOf(kind statestore.ChangeKind, data []byte) statestore.Change {
	var a announced
	if json.Unmarshal(data, &a) != nil {
		return statestore.Change{Kind: statestore.ChangeResync}
	}
	c := statestore.Change{Kind: kind, Version: a.Version, Class: a.Class}
	if app, err := creel.ParseApplicationID(a.Application); err == nil {
		c.Application = app
	}
	return c
}
