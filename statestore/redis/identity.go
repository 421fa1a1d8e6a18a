// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	goredis "github.com/redis/go-redis/v9"
)

// A store has an identity, made by the process that first opens it empty; each shard has a copy. A claim in a shard
// without the identity would assign a second home to a running application. So it is rejected until Reopen has written
// the homes that the ResourceManagers report.
//
// A rebuilt store has a new identity. A process that knew the old identity adopts only a later one. It does not adopt
// an empty store that a new process, unaware of the loss, has opened meanwhile. Nor does it adopt the earlier
// identity of a store restored from a backup. Marks detect a store that went back under the same identity (mark).
// With Config.Confirm, a new process opens an empty store in the state rebuilding, so that it too waits for the
// reports first. States:
const (
	stateMaking  = "making"     // an empty store is being opened: the shards are getting its identity
	stateReady   = "ready"      // opened as an empty store
	stateRebuild = "rebuilding" // homes are being written back: claims fail
	stateRebuilt = "rebuilt"    // ready, with the homes of all applications that the ResourceManagers run
)

func came(why string) error {
	return untilRebuilt("the store came back empty or was replaced: " + why)
}

func untilRebuilt(why string) error {
	return statestore.Unavailable(why+"; known homes are served, new ones wait for the rebuild", 5*time.Second)
}

// rebuildingError reports to a new process that the store's homes are being written back.
type rebuildingError struct{ error }

func (e rebuildingError) Unwrap() error { return e.error }

// whole returns the identity, and waits while the store is being rebuilt. A new or emptied store serves homes after
// some seconds; an error before that would make the client repeat its request. It waits as long as do.
func (s *Store) whole(ctx context.Context) (string, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(s.cfg.MaxWait)
	}
	const pause = 250 * time.Millisecond
	for {
		id, err := s.known(ctx)
		if err == nil || !errors.As(err, new(rebuildingError)) || time.Until(deadline) <= pause || !sleep(ctx, pause) {
			return id, err
		}
	}
}

// known returns the identity of the store; the first call opens the store.
func (s *Store) known(ctx context.Context) (string, error) {
	if p := s.identity.Load(); p != nil {
		return *p, nil
	}
	select { // one goroutine opens the store, the others wait for it
	case s.opening <- struct{}{}:
	case <-ctx.Done():
		return "", s.gaveUp(ctx, nil)
	}
	defer func() { <-s.opening }()
	if p := s.identity.Load(); p != nil {
		return *p, nil
	}
	id, schema, state, err := s.openMeta(ctx)
	if err != nil {
		return "", err
	}
	if err := statestore.ReadableSchema(schema); err != nil {
		return "", err
	}
	switch state {
	case stateRebuild:
		return "", rebuildingError{untilRebuilt("the store is new or came back empty, and its homes are being written back")}
	case stateMaking:
		if err := s.writeIdentity(ctx, id, "nx"); err != nil {
			return "", err
		}
		if _, err := s.write(
			ctx,
			stateScript,
			[]string{s.control("meta"), s.control("known")},
			id,
			stateReady,
		); err != nil {
			return "", err
		}
	}
	s.identity.Store(&id)
	return id, nil
}

// openMeta reads identity, schema and state, and sets them in an empty store.
func (s *Store) openMeta(ctx context.Context) (id, schema, is string, err error) {
	first := stateMaking
	if s.cfg.Confirm {
		first = stateRebuild
	}
	list, err := s.write(
		ctx,
		openScript,
		[]string{s.control("meta")},
		rand.Text(),
		strconv.Itoa(statestore.SchemaVersion),
		first,
	)
	if err != nil {
		return "", "", "", err
	}
	if len(list) != 3 {
		return "", "", "", surprise(list)
	}
	return str(list[0]), str(list[1]), str(list[2]), nil
}

// writeIdentity writes the identity into all shards. With how "nx" it keeps other identities, with "" it overwrites
// them.
func (s *Store) writeIdentity(ctx context.Context, id, how string) error {
	return s.everyShard(ctx, identityScript, id, how)
}

// everyShard runs a script that needs only the guard, on all shards in parallel.
func (s *Store) everyShard(ctx context.Context, sc *script, args ...any) error {
	errs := make(chan error, shards)
	for n := range int64(shards) {
		s.wg.Add(1)
		go func() {
			defer s.wg.Done()
			v, err := s.do(ctx, s.writing(ctx, sc, s.shard(n, "guard"), "", nil, args))
			if err == nil {
				_, err = refusal(ctx, v)
			}
			errs <- err
		}()
	}
	var first error
	for range shards {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// adopt handles a shard without the known identity. If another process has rebuilt the store, this process adopts the
// new identity.
func (s *Store) adopt(ctx context.Context, identity string) error {
	if identity == "" {
		return came("a shard has lost its identity")
	}
	v, err := s.do(ctx, command("HMGET", s.control("meta"), "id", "state"))
	if err != nil {
		return err
	}
	list, _ := v.([]any)
	switch {
	case len(list) != 2 || str(list[0]) != identity || str(list[1]) == stateMaking || str(list[1]) == stateRebuild:
		return came("it is not ready yet")
	case str(list[1]) != stateRebuilt:
		return came("it was opened as a new store without a rebuild")
	}
	if p := s.identity.Load(); p != nil && !follows(identity, *p) {
		return came("it went back to an earlier state")
	}
	s.identity.Store(&identity)
	return nil
}

// Lost reports whether the store, or a part of it, came back empty or in an earlier state, and waits for Reopen. It
// checks all shards, and adopts a store that another process has rebuilt. A process that did not know the store before
// the loss detects it only while the store is being rebuilt.
func (s *Store) Lost(ctx context.Context) (bool, error) {
	known := ""
	if p := s.identity.Load(); p != nil {
		known = *p
	}
	v, err := s.do(ctx, command("HMGET", s.control("meta"), "id", "state"))
	if err != nil {
		return false, err
	}
	list, _ := v.([]any)
	id, state := str(at(list, 0)), str(at(list, 1))
	switch {
	case state == stateRebuild:
		return true, nil
	case known == "":
		_, err := s.known(ctx)
		return false, err
	case id != known && state == stateRebuilt && follows(id, known):
		s.identity.Store(&id)
	case id != known:
		return true, nil
	}
	calls := make([]*call, shards)
	for n := range calls {
		calls[n] = command("HGET", s.shard(int64(n), "guard"), "@")
	}
	identities, err := s.all(ctx, calls)
	if err != nil {
		return false, err
	}
	for _, got := range identities {
		if str(got) != id {
			return true, nil
		}
	}
	return s.mark(ctx, id)
}

// madeAt is the microsecond in which an identity was made; 0 for identities of versions that did not record it.
func madeAt(identity string) int64 {
	_, us, _ := strings.Cut(identity, "@")
	at, _ := strconv.ParseInt(us, 10, 64)
	return at
}

// follows reports whether an identity was made after the known one. If not, the store went back to a state
// before its rebuild.
func follows(identity, known string) bool {
	return madeAt(known) == 0 || madeAt(identity) > madeAt(known)
}

// markKept is the time for which the store keeps a process's mark: longer than any pause of a process.
const markKept = 7 * 24 * time.Hour

// mark counts this process's checks in the store. No other process writes its mark, so a mark lower than at the
// previous check proves that the store went back to an earlier state. All claims stop then, as after a loss of all
// records. A store that rejects writes has no mark.
func (s *Store) mark(ctx context.Context, identity string) (back bool, err error) {
	known := s.knownMark(identity)
	list, err := s.write(ctx, markScript, s.markKeys(), s.markArgs(known)...)
	if err != nil {
		return false, nil
	}
	id, back := s.marked(known, list)
	if !back {
		return false, nil
	}
	return true, s.writeIdentity(ctx, "!"+id, "") // an identity unknown to every process
}

// connected runs mark as the first command on a new connection. So a server that restarted in an earlier state, or took
// over without the last writes, serves no claim of this process.
func (s *Store) connected(ctx context.Context, cn *goredis.Conn) error {
	p := s.identity.Load()
	if p == nil {
		return nil
	}
	known := s.knownMark(*p)
	c := s.writing(ctx, markScript, s.control("guard"), "", s.markKeys(), s.markArgs(known))
	c.args[0], c.args[1] = "EVAL", markScript.source
	v, err := cn.Do(ctx, c.args...).Result()
	if err != nil {
		return unlessAnswered(err) // another node of a cluster, or a store in trouble: its calls report that
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return nil
	}
	if s.cfg.Wait > 0 && str(list[0]) == "OK" {
		n, err := cn.Do(ctx, "WAIT", s.cfg.Wait, s.cfg.WaitTimeout.Milliseconds()).Int64()
		if err != nil || n < int64(s.cfg.Wait) {
			return unlessAnswered(err) // a failover may lose this mark: it proves nothing
		}
	}
	id, back := s.marked(known, list)
	if !back {
		return nil
	}
	for n := range int64(shards) {
		c := s.writing(ctx, identityScript, s.shard(n, "guard"), "", nil, []any{"!" + id, ""})
		c.args[0], c.args[1] = "EVAL", identityScript.source
		if err := unlessAnswered(cn.Do(ctx, c.args...).Err()); err != nil {
			return err // then Reopen writes it
		}
	}
	return nil
}

// unlessAnswered returns an error after which a connection is unusable: a late answer would be read as the answer of
// the next call. It returns nil for an error that is the server's answer.
func unlessAnswered(err error) error {
	var answered goredis.Error
	if errors.As(err, &answered) {
		return nil
	}
	return err
}

// mark is this process's mark in the store with an identity.
type mark struct {
	identity string
	count    int64 // the stored count is at least this
}

func (s *Store) knownMark(identity string) mark {
	if m := s.lastMark.Load(); m != nil && m.identity == identity {
		return *m
	}
	return mark{identity: identity}
}

func (s *Store) markKeys() []string { return []string{s.control("meta"), s.control("mark:" + s.self)} }

func (s *Store) markArgs(m mark) []any {
	return []any{m.identity, m.count, markKept.Milliseconds(), rand.Text(), stateRebuild}
}

// marked reads the answer of markScript. If the store went back, it returns the store's new identity.
func (s *Store) marked(sent mark, list []any) (identity string, back bool) {
	switch list[0] {
	case "OK":
		for next := (&mark{sent.identity, num(at(list, 1))}); ; {
			is := s.lastMark.Load()
			if is != nil && is.identity == next.identity && is.count >= next.count ||
				s.lastMark.CompareAndSwap(is, next) {
				return "", false
			}
		}
	case "BACK":
		if s.cfg.Log != nil {
			s.cfg.Log.Warn("the state store went back to an earlier state; the ResourceManagers are asked what they run",
				"mark", sent.count, "stored_mark", num(at(list, 1)),
				"try", "look for a restored backup, or a failover that lost writes (docs/operations/redis.md)")
		}
		return str(at(list, 2)), true
	}
	return "", false // the store has another identity: the next check reads it
}

// CheckSchema implements statestore.Schema.
func (s *Store) CheckSchema(ctx context.Context) error {
	if _, schema, state, err := s.openMeta(ctx); err != nil {
		return err
	} else if state == stateRebuild {
		return statestore.ReadableSchema(schema) // homes are written back later
	}
	if _, err := s.known(ctx); err != nil {
		return err
	}
	v, err := s.do(ctx, command("HGET", s.control("meta"), "schema"))
	if err != nil {
		return err
	}
	if v == nil {
		return came("it has no schema")
	}
	return statestore.ReadableSchema(str(v))
}

// Reopen makes a store serve claims again after all or part of it came back empty. It stops all claims, then calls
// collect for the correct homes (statestore.Rebuild of the reports of all ResourceManagers). It writes them, and only
// then writes the identity into the shards. Reported homes override claims made while the store lacked the records;
// each such case is a conflict in the result. Repeat it, in this or another process, until it returns no error; no
// claim is served before.
func (s *Store) Reopen(
	ctx context.Context,
	collect func(context.Context) ([]statestore.ApplicationHome, error),
) ([]statestore.Conflict, error) {
	var since int64 // madeAt of the known identity
	if p := s.identity.Load(); p != nil {
		since = madeAt(*p)
	}
	list, err := s.write(
		ctx,
		reopenScript,
		[]string{s.control("meta")},
		rand.Text(),
		strconv.Itoa(statestore.SchemaVersion),
		stateRebuild,
		since,
	)
	if err != nil {
		return nil, err
	}
	if len(list) != 2 {
		return nil, surprise(list)
	}
	id := str(list[0])
	if err := statestore.ReadableSchema(str(list[1])); err != nil {
		return nil, err
	}
	if err := s.writeIdentity(ctx, "!"+id, ""); err != nil { // an identity unknown to every process
		return nil, err
	}
	homes, err := collect(ctx)
	if err != nil {
		return nil, err
	}
	conflicts, err := statestore.Reclaim(ctx, s.applications.withoutIdentity(), homes)
	if err != nil {
		return conflicts, err
	}
	if err := s.writeIdentity(ctx, id, ""); err != nil {
		return conflicts, err
	}
	list, err = s.write(ctx, stateScript, []string{s.control("meta"), s.control("known")}, id, stateRebuilt)
	if err != nil {
		return conflicts, err
	}
	if list[0] != "OK" {
		return conflicts, came("it was replaced again during the rebuild")
	}
	s.identity.Store(&id)
	return conflicts, nil
}

// Remember stores the members that the caller knew before the loss, for the process that rebuilds the store. It is for
// a store that is Lost; the list is deleted after the rebuild.
func (s *Store) Remember(ctx context.Context, members []subcluster.Member) error {
	args := make([]any, 0, 2*len(members))
	for _, m := range members {
		b, err := json.Marshal(m)
		if err != nil {
			return err
		}
		args = append(args, string(m.ID), string(b))
	}
	return s.remember(ctx, args)
}

// AcceptMissing excludes a member from the rebuild in progress: the rebuild does not wait for its report. Applications
// that only this member runs may get a second home. The error is of kind creel.ErrConflict if the store is not being
// rebuilt.
func (s *Store) AcceptMissing(ctx context.Context, id creel.SubclusterID) error {
	return s.remember(ctx, []any{string(id), ""})
}

func (s *Store) remember(ctx context.Context, args []any) error {
	list, err := s.write(
		ctx, rememberScript, []string{s.control("meta"), s.control("known")}, append([]any{stateRebuild}, args...)...,
	)
	if err == nil && list[0] != "OK" {
		return &creel.Error{
			Kind: creel.ErrConflict,
			What: "the state store is not being rebuilt",
			Why:  "its homes are complete",
		}
	}
	return err
}

// Remembered returns the members reported for the rebuild in progress: members that must answer, and excluded members.
func (s *Store) Remembered(ctx context.Context) (members []subcluster.Member, missing []creel.SubclusterID, err error) {
	v, err := s.do(ctx, command("HGETALL", s.control("known")))
	if err != nil {
		return nil, nil, err
	}
	for id, text := range stringMap(v) {
		var m subcluster.Member
		switch {
		case text == "":
			missing = append(missing, creel.SubclusterID(id))
		case json.Unmarshal([]byte(text), &m) != nil:
			return nil, nil, surprise(text)
		default:
			members = append(members, m)
		}
	}
	return members, missing, nil
}
