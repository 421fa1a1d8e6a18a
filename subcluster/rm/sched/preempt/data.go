// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"time"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/leases"
	"github.com/creelrm/creel/subcluster/rm/sched/runtimes"
)

// Rule is the reason for taking a container back.
type Rule uint8

// Rules of preemption.
const (
	Guarantee   Rule = iota + 1 // a queue with asks has less than its guarantee
	MinShare                    // a FairScheduler queue has less than its minimum share
	FairShare                   // a FairScheduler queue has less than its fair share
	UserLimit                   // a user of the leaf has less than the user limit
	AppPriority                 // an application of the leaf has a higher priority
	Balance                     // a queue has its guarantee, and less than its part of the rest
)

func (r Rule) String() string {
	return [...]string{
		"", "guarantee", "minimum share", "fair share", "user limit", "application priority", "part beyond guarantees",
	}[r]
}

// Within reports whether a rule takes between users and applications of one leaf.
func (r Rule) Within() bool { return r == UserLimit || r == AppPriority }

// Terms are the conditions of a round.
type Terms struct {
	Sizes   *amounts.Sizes
	Total   amounts.Vec // of the nodes
	Now     int64       // ns since the epoch
	Wait    time.Duration
	Balance bool // queues are also balanced beyond their guarantees
	// Suits reports whether an ask could ever be placed on a node, by places, constraints and exclusions.
	Suits func(*Ask, *Node) bool
}

// Queue is a leaf.
type Queue struct {
	Owner     any // the caller's own value, here and below
	Serial    int // in configured order
	Priority  int32
	Use       float64 // over its guarantee
	Kept      bool    // it loses nothing to other queues
	LeastWork bool    // it loses the least work
	Runtimes  *runtimes.Histogram
	Budgets   []*leases.Budget // in force, of it and its ancestors

	budget *Budget
}

// User is a user of a leaf. Used and Limit matter for those with waiting asks.
type User struct {
	Used    amounts.Vec
	Limit   amounts.Vec
	Limited bool        // if not, Limit does not apply
	Lost    amounts.Vec // under notice; the round counts it

	claimed amounts.Vec
}

// App is an application.
type App struct {
	Owner any
	Queue *Queue // nil if it has left its queue
	User  *User
	Lost  amounts.Vec // under notice; the round counts it
}

// Ask is an ask that waits for Count containers of a size.
type Ask struct {
	Owner  any
	App    *App
	Size   *amounts.Size
	Count  int32
	Single bool  // a constraint may permit only one more
	Picky  bool  // it limits its nodes
	Hold   *Hold // its reservation

	claimed int32
}

// Hold is a reservation.
type Hold struct {
	Queue *Queue // of the ask
	Size  *amounts.Size
	Node  *Node
}

// Node is a node with free resources.
type Node struct {
	Owner any
	Free  amounts.Vec
	Hold  *Hold // the reservation of it

	// These belong to the chooser that looks at it.
	seen  *chooser
	room  amounts.Vec // free and unclaimed
	takes []int32     // the offers on it except AMs
}

// Container is a container that may be taken.
type Container struct {
	Owner   any
	App     *App
	Node    *Node
	Size    *amounts.Size
	Created int64 // ms since the epoch
	AM      bool
	Lent    bool // it runs on resources that a label has lent
}

// Need is the due shortage of a leaf, or of an application within a leaf, and its asks in the order of service.
type Need struct {
	Queue *Queue
	Rest  amounts.Vec
	Rule  Rule
	Types uint32 // types with a shortage; bit i for type i
	Asks  []*Ask
}

// Budget is the amount that may be taken from a leaf, or from an application or user of one.
type Budget struct {
	Queue  *Queue
	Hard   amounts.Vec // limit of all rounds
	Even   amounts.Vec // limit by Balance: the excess over the ideal
	Soft   amounts.Vec // limit of this round; the claim that reaches it may exceed it
	Types  uint32      // types with excess; bit i for type i
	Least  uint32      // types without excess, whose guarantee must not be touched either
	AMs    amounts.Vec // limit for AMs in it
	Strict bool        // other types must not be touched
}

// Claim is an amount on one node that is taken back for one ask.
type Claim struct {
	Rule    Rule
	Queue   *Queue // that gets the resources
	Ask     *Ask
	Size    *amounts.Size // of one container of the ask
	Node    *Node
	Count   int32 // containers of the ask
	Victims []Victim
	Spent   []*leases.Spending // budgets of the federation to charge for the victims
}

// Victim is a container that a claim takes.
type Victim struct {
	Container
	Choice Choice
}

// Choice records the reason for choosing a victim.
type Choice struct {
	loss   float64 // expected loss; only with LeastWork
	stays  float32 // chance that it still runs at the kill
	weight float32
	of     int32 // number of victims on the node in this choice
	am     bool
	lent   bool
	least  bool
	taken  bool // in a claim of this round
}
