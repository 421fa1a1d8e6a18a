// SPDX-License-Identifier: Apache-2.0

package hadoopstate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm/zkstate"
)

// These bound a transaction of Write. maxRecord is ZooKeeper's standard limit of a request, less the request's head.
const (
	groupNodes = 200
	groupBytes = 256 << 10
	maxRecord  = 1<<20 - 1<<10
)

// maxList is the greatest number of applications, or tokens, that are children of one node. The answer to a question
// for children has at most 1 MiB. Tests shorten it.
var maxList = 10_000

// Write writes the state below a path that has none.
func Write(ctx context.Context, nodes Nodes, parent string, s *State) error {
	root := rootOf(parent)
	list, err := s.records(root)
	if err != nil {
		return err
	}
	if err := vacate(ctx, nodes, root); err != nil {
		return err
	}
	if parent != "/" {
		if err := nodes.Make(ctx, parent); err != nil {
			return err
		}
	}
	head := []zkstate.Node{{Path: root}, {Path: root + versionName, Data: version(unfinished, 0)}}
	if err := nodes.Create(ctx, head); err != nil {
		return err
	}
	for len(list) > 0 {
		n, size := 0, 0
		for n < len(list) && n < groupNodes && (n == 0 || size+len(list[n].Data) <= groupBytes) {
			size += len(list[n].Data)
			n++
		}
		if err := nodes.Create(ctx, list[:n]); err != nil {
			return err
		}
		list = list[n:]
	}
	return nodes.Set(ctx, zkstate.Node{Path: root + versionName, Data: version(major, minor)})
}

func version(major, minor int32) []byte {
	b, _ := (&pb.VersionProto{MajorVersion: &major, MinorVersion: &minor}).MarshalVT() // it has two numbers
	return b
}

// vacate removes a part of a state that an earlier Write left. Any other state is an error.
func vacate(ctx context.Context, nodes Nodes, root string) error {
	_, _, err := nodes.Get(ctx, root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	data, _, err := nodes.Get(ctx, root+versionName)
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(data) != string(version(unfinished, 0)) {
		return fmt.Errorf("%s: %w", root, ErrOccupied)
	}
	if err != nil {
		return err
	}
	names, err := nodes.Children(ctx, root)
	if err != nil {
		return err
	}
	for _, name := range names {
		if "/"+name == versionName {
			continue // the last one, so that a repetition finds it
		}
		if err := remove(ctx, nodes, root+"/"+name); err != nil {
			return err
		}
	}
	if err := nodes.Delete(ctx, root+versionName); err != nil {
		return err
	}
	return nodes.Delete(ctx, root)
}

func remove(ctx context.Context, nodes Nodes, path string) error {
	names, err := nodes.Children(ctx, path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := remove(ctx, nodes, path+"/"+name); err != nil {
			return err
		}
	}
	return nodes.Delete(ctx, path)
}

// records are the nodes below the root, without the version, parents first.
func (s *State) records(root string) (list []zkstate.Node, err error) {
	add := func(path string, data []byte) { list = append(list, zkstate.Node{Path: root + path, Data: data}) }
	addAll := func(nodes []zkstate.Node, err error) error {
		for _, n := range nodes {
			if err == nil && len(n.Data) > maxRecord {
				err = fmt.Errorf("the record has %d bytes, and ZooKeeper accepts %d", len(n.Data), maxRecord)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", root+n.Path, err)
			}
			add(n.Path, n.Data)
		}
		return err
	}
	apps := leavesOf(appsName, appsSplitName, len(s.Apps), add)
	tokens, number := leavesOf(tokensName, tokensName, len(s.Tokens), add), "%d"
	if len(s.Tokens) > maxList {
		number = "%04d" // so that the split leaves the prefix whole
	}
	add(epochName, appendEpoch(s.Epoch))
	add(appsName, nil)
	for i := range s.Apps {
		if err := addAll(s.Apps[i].nodes(apps(s.Apps[i].ID.String()))); err != nil {
			return nil, err
		}
	}
	add(secretsName, nil)
	add(sequenceName, appendSequence(s.Sequence))
	add(keysName, nil)
	for _, k := range s.Keys {
		add(keyPath(k), k.Append(nil))
	}
	add(tokensName, nil)
	for _, t := range s.Tokens {
		if err := addAll(tokenNodes(tokens(tokenPrefix+fmt.Sprintf(number, t.Sequence)), t)); err != nil {
			return nil, err
		}
	}
	add(amrmName, appendAMRM(s.AMRM))
	return list, nil
}

// nodes are the records of an application at a path, and of its attempts.
func (a *App) nodes(path string) ([]zkstate.Node, error) {
	data, err := a.Data.MarshalVT()
	out := []zkstate.Node{{Path: path, Data: data}}
	for _, t := range a.Attempts {
		if err != nil {
			break
		}
		data, err = t.MarshalVT()
		out = append(out, zkstate.Node{Path: path + "/" + attemptName(t), Data: data})
	}
	return out, err
}

func attemptName(t *pb.ApplicationAttemptStateDataProto) string {
	return pb.ToAttemptID(t.AttemptId).String()
}

// tokenNodes is the record of a delegation token.
func tokenNodes(path string, t token.DelegationRecord) ([]zkstate.Node, error) {
	id, expires := new(pb.YARNDelegationTokenIdentifierProto), t.Expires.UnixMilli()
	if err := id.UnmarshalVT(t.Append(nil)); err != nil {
		return nil, err
	}
	data, err := (&pb.RMDelegationTokenIdentifierDataProto{TokenIdentifier: id, RenewDate: &expires}).MarshalVT()
	return []zkstate.Node{{Path: path, Data: data}}, err
}

func keyPath(k token.DelegationKey) string {
	return keysName + "/" + keyPrefix + strconv.Itoa(int(k.ID))
}

func appendEpoch(epoch int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(epoch))
}

func appendSequence(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

// leavesOf returns a function that returns the path of a record in a list, and adds its missing parents. The last
// characters of names are split off if the list is long. Hadoop's ResourceManager reads each split, whatever its
// settings.
func leavesOf(base, split string, n int, add func(path string, data []byte)) func(name string) string {
	if n <= maxList {
		return func(name string) string { return base + "/" + name }
	}
	const cut = 2
	made := map[string]bool{base: true}
	return func(name string) string {
		at := len(name) - cut
		above := split + "/" + strconv.Itoa(cut)
		for _, parent := range []string{split, above, above + "/" + name[:at]} {
			if !made[parent] {
				made[parent] = true
				add(parent, nil)
			}
		}
		return above + "/" + name[:at] + "/" + name[at:]
	}
}

// appendAMRM writes an AMRMTokenSecretManagerStateProto.
func appendAMRM(keys token.KeyState) (b []byte) {
	for i, k := range []token.Key{keys.Current, keys.Next} {
		if k.IsZero() {
			continue
		}
		m, _ := k.Proto().MarshalVT() // it has a number and bytes
		b = protowire.AppendBytes(protowire.AppendTag(b, protowire.Number(i+1), protowire.BytesType), m)
	}
	return b
}
