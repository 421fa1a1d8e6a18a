// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/creelrm/creel"
)

// hashHome always sends a queue to the same member, by weighted rendezvous hashing. When a member leaves, only its
// queues move. It replaces Hadoop's HashBasedRouterPolicy, which moves nearly all queues.
type hashHome struct{ weights Weights }

func (hashHome) name() string { return "hash" }

func (h hashHome) given() Weights { return h.weights }

func (hashHome) with(weights Weights) homeRule { return hashHome{weights} }

func (h hashHome) choose(d *homeDecision, _ *rand.Rand) (int, string) {
	d.excludeWeightless(h.weights)
	if len(d.in) == 0 {
		return -1, noWeight
	}
	for _, i := range d.in {
		id := d.id(i)
		d.score[i] = rendezvous(d.sub.Queue, id, h.weights.of(id))
	}
	best := d.best(d.in)
	return best, fmt.Sprintf("queue %q hashes highest with it", d.sub.Queue)
}

// rendezvous returns the score of Thaler and Ravishankar's highest random weight hashing with Schindelhauer's
// weights: -w / ln(u), u uniform in (0,1).
func rendezvous(q creel.QueuePath, id creel.SubclusterID, weight float64) float64 {
	h := uint64(14695981039346656037) // FNV-1a
	for _, s := range [...]string{string(q), "\x00", string(id)} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
	}
	// FNV hashes of similar keys have similar high bits; mix them as splitmix64 does.
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	h ^= h >> 31
	u := (float64(h>>11) + 0.5) / (1 << 53)
	return -weight / math.Log(u)
}
