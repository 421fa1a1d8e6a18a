// SPDX-License-Identifier: Apache-2.0

package hadoopstate

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// These bound the state that is read.
const (
	maxNodes = 4 << 20
	maxBytes = 2 << 30
)

// reader reads one state.
type reader struct {
	ctx   context.Context
	nodes Nodes
	root  string
	read  int // nodes
	bytes int
	out   *State
	found map[string]found // records by the paths without splits, if not nil
}

// found is a record at a node.
type found struct {
	path string // below the root
	data []byte
}

// note remembers a record: name is its path in a list without splits, or empty for the node's own path.
func (r *reader) note(path, name string, data []byte) {
	if r.found == nil {
		return
	}
	path = strings.TrimPrefix(path, r.root)
	r.found[cmp.Or(name, path)] = found{path, data}
}

// Read reads the state below a path.
func Read(ctx context.Context, nodes Nodes, parent string) (*State, error) {
	r := &reader{ctx: ctx, nodes: nodes, root: rootOf(parent), out: &State{}}
	_, before, err := nodes.Get(ctx, r.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", parent, ErrNoState)
	}
	if err != nil {
		return nil, err
	}
	if err := r.version(); err != nil {
		return nil, err
	}
	if err := r.records(); err != nil {
		return nil, err
	}
	_, after, err := nodes.Get(ctx, r.root)
	if err == nil && before != after {
		err = fmt.Errorf("%s: %w", r.root, ErrChanging)
	}
	if err != nil {
		return nil, err
	}
	return r.out, nil
}

// records reads all but the version.
func (r *reader) records() error {
	for _, part := range []func() error{r.epoch, r.apps, r.amrm, r.sequence, r.keys, r.tokens, r.reservations} {
		if err := part(); err != nil {
			return err
		}
	}
	slices.SortFunc(r.out.Apps, func(a, b App) int { return a.ID.Compare(b.ID) })
	for i := 1; i < len(r.out.Apps); i++ {
		if id := r.out.Apps[i].ID; id == r.out.Apps[i-1].ID {
			return fmt.Errorf("%s has %s twice, with different splits", r.root, id)
		}
	}
	return nil
}

// message is a record.
type message interface{ UnmarshalVT([]byte) error }

// get reads a node, and its record if into is not nil. A missing node is not found.
func (r *reader) get(path string, into message) (data []byte, found bool, err error) {
	data, _, err = r.nodes.Get(r.ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	r.read, r.bytes = r.read+1, r.bytes+len(data)
	if err == nil && (r.read > maxNodes || r.bytes > maxBytes) {
		err = fmt.Errorf("%s: the state has more than %d nodes or %d bytes", path, maxNodes, maxBytes)
	}
	if err == nil && into != nil {
		if err = into.UnmarshalVT(data); err != nil {
			err = fmt.Errorf("%s: the record cannot be read: %w", path, err)
		}
	}
	return data, err == nil, err
}

// children returns the names of a node's children that have a prefix. A missing node has none.
func (r *reader) children(path, prefix string) ([]string, error) {
	names, err := r.nodes.Children(r.ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) })
	slices.Sort(names)
	return names, err
}

// leaves calls f for each node of a list that may be split: base has whole names, and a child N of split has names
// without their last N characters.
func (r *reader) leaves(base, split, prefix string, f func(path, name string) error) error {
	names, err := r.children(base, prefix)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := f(base+"/"+name, name); err != nil {
			return err
		}
	}
	for n := 1; n <= splits; n++ {
		heads, err := r.children(split+"/"+strconv.Itoa(n), prefix)
		if err != nil {
			return err
		}
		for _, head := range heads {
			path := split + "/" + strconv.Itoa(n) + "/" + head
			tails, err := r.children(path, "")
			if err != nil {
				return err
			}
			for _, tail := range tails {
				if err := f(path+"/"+tail, head+tail); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (r *reader) version() error {
	var v pb.VersionProto
	_, found, err := r.get(r.root+versionName, &v)
	if err == nil && !found {
		err = ErrNoState
	}
	if err == nil {
		err = versionError(&v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.root, err)
	}
	return nil
}

func (r *reader) epoch() error {
	var e pb.EpochProto
	data, known, err := r.get(r.root+epochName, &e)
	if known {
		r.note(r.root+epochName, "", data)
	}
	if err == nil && e.GetEpoch() < 0 {
		err = fmt.Errorf("%s: epoch %d is negative", r.root+epochName, e.GetEpoch())
	}
	r.out.Epoch = e.GetEpoch()
	return err
}

func (r *reader) apps() error {
	return r.leaves(r.root+appsName, r.root+appsSplitName, appPrefix, func(path, name string) error {
		id, err := creel.ParseApplicationID(name)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		a := App{ID: id, Data: new(pb.ApplicationStateDataProto)}
		data, known, err := r.get(path, a.Data)
		if err != nil || !known {
			return cmp.Or(err, fmt.Errorf("%s: %w", path, ErrChanging))
		}
		r.note(path, appsName+"/"+name, data)
		if got := pb.ToApplicationID(a.Data.GetApplicationSubmissionContext().GetApplicationId()); got != id {
			return fmt.Errorf("%s: the record is of %s", path, got)
		}
		if a.Attempts, err = r.attempts(path, id); err != nil {
			return err
		}
		r.out.Apps = append(r.out.Apps, a)
		return nil
	})
}

func (r *reader) attempts(app string, id creel.ApplicationID) (out []*pb.ApplicationAttemptStateDataProto, err error) {
	names, err := r.children(app, attemptPrefix)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		path, t := app+"/"+name, new(pb.ApplicationAttemptStateDataProto)
		data, known, err := r.get(path, t)
		if err != nil || !known {
			return nil, cmp.Or(err, fmt.Errorf("%s: %w", path, ErrChanging))
		}
		r.note(path, appsName+"/"+id.String()+"/"+name, data)
		got := pb.ToAttemptID(t.GetAttemptId())
		if want, err := creel.ParseAttemptID(name); err != nil || got != want || got.Application != id {
			return nil, fmt.Errorf("%s: the record is of %s", path, got)
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *pb.ApplicationAttemptStateDataProto) int {
		return cmp.Compare(a.GetAttemptId().GetAttemptId(), b.GetAttemptId().GetAttemptId())
	})
	return out, nil
}

func (r *reader) amrm() error {
	data, known, err := r.get(r.root+amrmName, nil)
	if known {
		r.note(r.root+amrmName, "", data)
	}
	if err != nil || len(data) == 0 {
		return err // no ResourceManager was active
	}
	keys, err := token.ParseAMRMKeys(data)
	if err != nil {
		return fmt.Errorf("%s: %w", r.root+amrmName, err)
	}
	if r.out.AMRM.Current = keys[len(keys)-1]; len(keys) > 1 {
		r.out.AMRM.Next = keys[0]
	}
	return nil
}

func (r *reader) sequence() error {
	data, known, err := r.get(r.root+sequenceName, nil)
	if known {
		r.note(r.root+sequenceName, "", data)
	}
	switch {
	case err != nil || len(data) == 0:
		return err // no token was issued
	case len(data) != 4:
		return fmt.Errorf("%s: the number has %d bytes, not 4", r.root+sequenceName, len(data))
	}
	r.out.Sequence = int32(binary.BigEndian.Uint32(data))
	return nil
}

func (r *reader) keys() error {
	names, err := r.children(r.root+keysName, keyPrefix)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := r.root + keysName + "/" + name
		data, _, err := r.get(path, nil)
		if err != nil {
			return err
		}
		k, err := token.ParseDelegationKey(data)
		if err == nil && len(k.Secret) == 0 {
			err = errors.New("the key has no secret")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		r.note(path, "", data)
		r.out.Keys = append(r.out.Keys, k)
	}
	slices.SortFunc(r.out.Keys, func(a, b token.DelegationKey) int { return cmp.Compare(a.ID, b.ID) })
	return nil
}

func (r *reader) tokens() error {
	base := r.root + tokensName
	return r.leaves(base, base, tokenPrefix, func(path, _ string) error {
		var d pb.RMDelegationTokenIdentifierDataProto
		data, _, err := r.get(path, &d)
		if err != nil {
			return err
		}
		identifier, err := d.GetTokenIdentifier().MarshalVT()
		var id token.Delegation
		if err == nil {
			id, err = token.ParseDelegation(identifier)
		}
		if err == nil && (id.Owner == "" || id.Sequence == 0) {
			err = errors.New("the token has no owner or no number")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		r.note(path, tokenPath(id.Sequence), data)
		r.out.Tokens = append(r.out.Tokens,
			token.DelegationRecord{Delegation: id, Expires: time.UnixMilli(d.GetRenewDate())})
		return nil
	})
}

func (r *reader) reservations() error {
	plans, err := r.children(r.root+reservationsName, "")
	for _, plan := range plans {
		var names []string
		if names, err = r.children(r.root+reservationsName+"/"+plan, ""); err != nil {
			break
		}
		r.out.Reservations += len(names)
	}
	return err
}
