// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/creelrm/creel/statestore"
)

// fullAt is the fraction of maxmemory above which a server is nearly full.
const fullAt = 0.9

// Health checks the configuration of each primary and whether it accepts writes. It returns findings for an operator,
// each once. The error is of kind creel.ErrUnavailable if a server does not answer. It reads INFO and, if the user may
// (+config|get), the setting `save`. It writes one key, which expires by itself.
func (s *Store) Health(ctx context.Context) ([]statestore.Finding, error) {
	var mu sync.Mutex
	var all []statestore.Finding
	look := func(ctx context.Context, c *goredis.Client) error {
		text, err := c.Info(ctx).Result() // all sections: one exchange, which every version of Redis supports
		if err != nil {
			return err
		}
		conf := map[string]string{}
		for _, name := range []string{"save", "appendfsync"} {
			got, err := c.ConfigGet(ctx, name).Result()
			if err != nil && !isAnswer(err) {
				return err
			}
			maps.Copy(conf, got)
		}
		found := judge(facts(text), conf, s.replicasWanted())
		for i := range found { // a change that waits for a missing replica is never acknowledged
			found[i].Stop = found[i].Stop || found[i].Name == statestore.FewReplicas && s.cfg.Wait > 0
		}
		mu.Lock()
		all = append(all, found...)
		mu.Unlock()
		return nil
	}
	var err error
	if s.cluster != nil {
		err = s.cluster.ForEachMaster(ctx, look)
	} else if c, ok := s.client.(*goredis.Client); ok {
		err = look(ctx, c)
	}
	if err != nil {
		return nil, s.translate(err)
	}
	if (s.cluster != nil || s.sentinels) && s.cfg.Wait == 0 {
		all = append(all, statestore.Finding{
			Name: statestore.Unconfirmed,
			What: "the state store fails over, and no replica confirms its writes: creel.store.wait-replicas is 0",
			Try:  "set creel.store.wait-replicas to the number of replicas of a primary",
		})
	}
	if err := s.client.Set(ctx, s.control("probe"), "1", time.Minute).Err(); isAnswer(err) {
		all = append(all, notWritable(firstLine(s.translate(err).Error())))
	} else if err != nil {
		return nil, s.translate(err)
	}
	slices.SortFunc(all, func(a, b statestore.Finding) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(all, func(a, b statestore.Finding) bool { return a.Name == b.Name }), nil
}

// isAnswer reports whether the error is a server's reply, which shows that the server is up.
func isAnswer(err error) bool {
	var answer goredis.Error
	return errors.As(err, &answer)
}

// replicasWanted is the number of replicas that each primary should have.
func (s *Store) replicasWanted() int {
	if s.cluster != nil || s.sentinels {
		return max(1, s.cfg.Wait)
	}
	return s.cfg.Wait
}

func notWritable(why string) statestore.Finding {
	return statestore.Finding{
		Name: statestore.NotWritable, Stop: true, What: "the state store rejects writes: " + why,
		Try: "point creel.store.url at the primary, or give the server memory, disk or replicas",
	}
}

// facts reads the text of INFO.
func facts(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			out[name] = value
		}
	}
	return out
}

// judge derives findings from a server's INFO and its settings save and appendfsync, as far as the user may read them.
// replicas is how many it should have.
func judge(info, conf map[string]string, replicas int) (out []statestore.Finding) {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(info[name], 10, 64) // 0 if an old server lacks the figure
		return n
	}
	if info["role"] == "slave" {
		out = append(out, notWritable("the server is a replica of "+info["master_host"]+":"+info["master_port"]))
	}
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		out = append(out, statestore.Finding{
			Name: statestore.Evicts,
			What: "the state store evicts records when its memory is full: maxmemory-policy is " + policy,
			Try:  "set maxmemory-policy to noeviction",
		})
	}
	save, known := conf["save"]
	snapshots := save != ""
	if !known { // a server with the default rule has saved within an hour of a change
		late := time.Since(time.Unix(number("rdb_last_save_time"), 0)) > 70*time.Minute
		snapshots = number("rdb_changes_since_last_save") == 0 || !late
	}
	switch {
	case number("aof_enabled") == 0 && !snapshots:
		out = append(out, statestore.Finding{
			Name: statestore.NotPersistent,
			What: "the state store has no persistence: append-only file and snapshots are off",
			Try:  "set appendonly yes",
		})
	case info["aof_last_write_status"] == "err", info["rdb_last_bgsave_status"] == "err":
		out = append(out, statestore.Finding{
			Name: statestore.NotPersistent,
			What: "the state store's last disk write failed",
			Try:  "check the server's disk and its log",
		})
	case number("aof_enabled") == 0:
		out = append(out, statestore.Finding{
			Name: statestore.LosesWrites,
			What: "the state store has snapshots alone: a restart loses all writes since the last one",
			Try:  "set appendonly yes",
		})
	case conf["appendfsync"] == "no":
		out = append(out, statestore.Finding{
			Name: statestore.LosesWrites,
			What: "the state store leaves its writes to the kernel (appendfsync no): a crash of its machine loses them",
			Try:  "set appendfsync to everysec or always",
		})
	}
	if have := number("connected_slaves"); info["role"] != "slave" && have < int64(replicas) {
		out = append(out, statestore.Finding{
			Name: statestore.FewReplicas,
			What: fmt.Sprintf(
				"a primary of the state store has %d of %d replicas",
				have,
				replicas,
			),
			Try: "start the missing replica; until then the loss of one server loses records",
		})
	}
	if most := number("maxmemory"); most > 0 && float64(number("used_memory")) >= fullAt*float64(most) {
		out = append(out, statestore.Finding{
			Name: statestore.NearlyFull,
			What: fmt.Sprintf("the state store uses %d of %d bytes", number("used_memory"), most),
			Try:  "raise maxmemory; claims are refused when it is full",
		})
	}
	return out
}
