// SPDX-License-Identifier: Apache-2.0

package subcluster

// Enrollment makes a process a member of the federation under a name, and maintains the membership. It takes an epoch
// from the store, makes it durable, registers, and reports. It is pure. Its caller carries out the Step that Next
// returns and passes the result to Done, until a heartbeat was sent or a step failed. It starts again when the next
// heartbeat is due. The agent and the simulator use it.
type Enrollment struct {
	Member Member // its Epoch comes from the store
	// Previous is the epoch of this process's predecessor, 0 if there is none. TakeOver takes over the name of a live
	// member. Keeps means that epochs are made durable.
	Previous        int64
	TakeOver, Keeps bool
	Signer          *Signer // of the record and the heartbeats; nil: they are not signed

	taken      int64 // the newest epoch from the store that is not durable yet
	epoch      int64 // 0 until one can be used
	registered bool
	reports    *Reporter
}

// Step is one action: exactly one field is set.
type Step struct {
	Take      bool       // take the next epoch from the store
	Keep      int64      // make this epoch durable
	Register  *Member    // at the store
	Heartbeat *Heartbeat // to the store
}

// Epoch returns the epoch that this process uses, 0 before it has one.
func (j *Enrollment) Epoch() int64 { return j.epoch }

// Registered reports whether the process is a member, as of its last step.
func (j *Enrollment) Registered() bool { return j.registered }

// Next returns the next step; load is the current report.
func (j *Enrollment) Next(load []byte) Step {
	switch {
	case j.epoch == 0 && j.taken == 0:
		return Step{Take: true}
	case j.epoch == 0:
		return Step{Keep: j.taken}
	case !j.registered:
		m := j.Member
		m.Epoch, m.Capability = j.epoch, string(WithoutQueues(load))
		if j.Signer != nil {
			m = j.Signer.Member(m)
		}
		return Step{Register: &m}
	}
	b := j.reports.Next(load)
	return Step{Heartbeat: &b}
}

// Done takes the result of a step. If the step took an epoch, epoch is the store's.
func (j *Enrollment) Done(s Step, epoch int64, err error) {
	switch {
	case s.Take && err == nil && j.Keeps:
		j.taken = epoch
	case s.Take && err == nil:
		j.epoch = epoch
	case s.Keep != 0:
		// Never use an epoch that is not durable: a successor could not prove its origin.
		if j.taken = 0; err == nil {
			j.epoch = s.Keep
		}
	case s.Register != nil && err == nil:
		j.registered = true
		if j.reports == nil {
			j.reports = &Reporter{ID: j.Member.ID, Epoch: j.epoch, Signer: j.Signer}
		}
		j.reports.Lost()
	case s.Heartbeat != nil && err != nil:
		j.reports.Lost()
	}
}

// Runs sets the software behind the addresses. If it differs from the registered one, the member must register again.
func (j *Enrollment) Runs(version string) {
	if j.Member.Version != version {
		j.Member.Version, j.registered = version, false
	}
}

// Forgotten records that the store has lost the member: it must register again.
func (j *Enrollment) Forgotten() { j.registered = false }
