// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/state"
	"github.com/creelrm/creel/subcluster/rm/transfer"
	"github.com/creelrm/creel/subcluster/rm/turn"
)

// These are the journal's keys besides those of the machine's records (package turn).
const (
	keyMeta    = "meta"
	keySecrets = "secrets"
	keyToken   = "token/" // token/<sequence number> of a delegation token
)

// meta is the state that one start of the ResourceManager passes to the next.
type meta struct {
	Starts int64 `json:"starts"`           // number of starts
	Member int64 `json:"member,omitempty"` // its newest epoch as a member of a federation

	First   int64     `json:"first,omitempty"`  // epoch of the first start, if Config.FirstEpoch returned it
	Started time.Time `json:"started,omitzero"` // timestamp of the newest start, in application ids
}

// putStart records the start of the ResourceManager before any client can see it.
func (s *Server) putStart(m meta) error {
	value, err := json.Marshal(m)
	if err != nil {
		return err
	}
	s.durability.tx.Put(keyMeta, value)
	return s.putSecrets()
}

// FirstStart reports whether there is a journal that was empty.
func (s *Server) FirstStart() bool { return s.durability.log != nil && s.meta.Starts == 1 }

// MemberEpoch returns the last epoch that this ResourceManager, or the previous one on this journal, used as a member
// of a federation; 0 for none. Call it before Run.
func (s *Server) MemberEpoch() int64 { return s.meta.Member }

// KeepMemberEpoch saves an epoch and returns when it is durable, so that the next process on this journal can prove
// that it is the successor.
func (s *Server) KeepMemberEpoch(ctx context.Context, epoch int64) error {
	_, err := Do(
		ctx,
		s,
		Caller{},
		Op[struct{}]{durable: true, Run: func(*rm.Machine, time.Time) func() (struct{}, error) {
			s.meta.Member = epoch
			value, err := json.Marshal(s.meta)
			if err != nil {
				return Failed[struct{}](err)
			}
			s.durability.tx.Put(keyMeta, value)
			return Done(struct{}{})
		}},
	)
	return err
}

// putSecrets adds the master keys to this turn's transaction.
func (s *Server) putSecrets() error {
	value, err := s.secrets.value()
	if err != nil {
		return err
	}
	s.durability.tx.Put(keySecrets, value)
	return s.tokens.putKeys(&s.durability.tx)
}

// journalContent is the content of the journal, as read.
type journalContent struct {
	meta      meta
	recover   *rm.Recover
	secrets   []byte
	tokenKeys []byte
	tokens    [][]byte
	conf      storedConf
	drains    map[string]HostDrain
}

// replay reads the journal: the machine's records, keys and tokens, and the number of starts.
func replay(log state.Log, records *turn.Records) (k journalContent, err error) {
	err = log.Each(func(key string, value []byte) error {
		switch known, err := records.Read(key, value); {
		case known || err != nil:
			return err
		case key == keyMeta:
			return json.Unmarshal(value, &k.meta)
		case key == keySecrets:
			k.secrets = value
		case key == keyTokenKeys:
			k.tokenKeys = value
		case strings.HasPrefix(key, keyToken):
			k.tokens = append(k.tokens, value)
		case strings.HasPrefix(key, keyConf):
			return k.conf.read(key, value)
		case strings.HasPrefix(key, keyDrain):
			return k.readDrain(value)
		case key == transfer.Mark:
			return errors.New("an import into this state, or its deletion, did not end: repeat creel rm import or creel rm format")
		default:
			return fmt.Errorf("key %q is unknown: a newer version wrote the journal", key)
		}
		return nil
	})
	if err != nil {
		return journalContent{}, fmt.Errorf("resource manager: reading the state: %w", err)
	}
	k.recover = records.Recovered()
	return k, nil
}
