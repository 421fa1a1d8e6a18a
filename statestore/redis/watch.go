// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	goredis "github.com/redis/go-redis/v9"
)

// Watch implements statestore.Watch by publish and subscribe. After each (re)connection it sends ChangeResync.
// It checks connections every few seconds, so that a silent loss is detected.
func (s *Store) Watch(ctx context.Context, notify func(statestore.Change)) error {
	sub := s.client.Subscribe(ctx, s.channel)
	defer func() { _ = sub.Close() }()
	heard := sub.ChannelWithSubscriptions(goredis.WithChannelSize(256))
	for {
		select {
		case <-ctx.Done():
			return nil
		case m, ok := <-heard:
			if !ok {
				if ctx.Err() != nil {
					return nil
				}
				return statestore.Unavailable("the subscription ended", 0)
			}
			switch m := m.(type) {
			case *goredis.Subscription:
				s.readAllNext()
				notify(statestore.Change{Kind: statestore.ChangeResync})
			case *goredis.Message:
				change := parseChange(m.Payload)
				if change.Kind == statestore.ChangeResync || m.Payload == "m" {
					s.readAllNext()
				}
				notify(change)
			}
		}
	}
}

// readAllNext makes the next Records read all members: an older creel, which does not count its changes, may have
// changed them.
func (s *Store) readAllNext() {
	s.members.Store(&memberSet{})
	s.inParts.Store(&memberSet{})
}

// parseChange reads a message: "m <count>", from older creel releases "m", "k", "p <version>", "d <class> <version>" or
// "h <application>". An unreadable message may come from a newer creel: then anything may have changed.
func parseChange(text string) statestore.Change {
	word, rest, _ := strings.Cut(text, " ")
	switch word {
	case "m":
		return statestore.Change{Kind: statestore.ChangeMembers}
	case "k":
		return statestore.Change{Kind: statestore.ChangeKeys}
	case "p":
		if v := num(rest); v > 0 {
			return statestore.Change{Kind: statestore.ChangePolicies, Version: v}
		}
	case "d":
		class, version, _ := strings.Cut(rest, " ")
		if v := num(version); v > 0 && class != "" {
			return statestore.Change{Kind: statestore.ChangeDocuments, Class: class, Version: v}
		}
	case "h":
		if app, err := creel.ParseApplicationID(rest); err == nil {
			return statestore.Change{Kind: statestore.ChangeHome, Application: app}
		}
	}
	return statestore.Change{Kind: statestore.ChangeResync}
}
