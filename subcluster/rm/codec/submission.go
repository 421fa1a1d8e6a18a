// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"fmt"
	"math"
	"unicode/utf16"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
)

// YARN's limits on a submission.
const (
	maxTypeLength   = 20
	maxTokensConf   = 12800 // yarn.resourcemanager.delegation-token.max-conf-size-bytes
	maxContextBytes = 32 << 20
	anyPlace        = "*"
)

// TagLimits limit the tags of an application.
type TagLimits struct {
	Count  int // yarn.resourcemanager.application.max-tags
	Length int // yarn.resourcemanager.application.max-tag.length
}

// Hadoop's limits; and no limits, for submissions that were accepted before.
var (
	DefaultTagLimits = TagLimits{10, 100}
	NoTagLimits      = TagLimits{math.MaxInt, math.MaxInt}
)

// ErrNoApplicationID is the kind of the error for a request without an application id; YARN has a separate exception
// for it.
var ErrNoApplicationID = fmt.Errorf("%w: no application id", creel.ErrInvalidRequest)

// shorten cuts a text after so many of Java's characters, as Hadoop does.
func shorten(text string, most int) string {
	n := 0
	for i, r := range text {
		if n += max(utf16.RuneLen(r), 1); n > most {
			return text[:i]
		}
	}
	return text
}

// maxCaller is the greatest size of a caller context that is kept, in bytes. Hadoop's clients send at most 128.
const maxCaller = 4096

// CallerContext encodes a client's caller context as a RPCCallerContextProto. It is nil for none, and for one that is
// too large to be kept.
func CallerContext(text string, signature []byte) (b []byte) {
	if text == "" || len(text)+len(signature) > maxCaller {
		return nil
	}
	b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), text)
	if len(signature) > 0 {
		b = protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), signature)
	}
	return b
}

// Submission checks a submission message and returns it in the machine's form. Context has the message itself.
func Submission(
	c *pb.ApplicationSubmissionContextProto, user string, groups []string, tags TagLimits,
) (rm.Submission, error) {
	s := rm.Submission{
		ID:             pb.ToApplicationID(c.GetApplicationId()),
		User:           user,
		Groups:         groups,
		Name:           c.GetApplicationName(),
		Type:           c.GetApplicationType(),
		Tags:           c.GetApplicationTags(),
		Queue:          c.GetQueue(),
		Unmanaged:      c.GetUnmanagedAm(),
		KeepContainers: c.GetKeepContainersAcrossApplicationAttempts(),
		MaxAttempts:    int(c.GetMaxAppAttempts()),
		Label:          appLabel(c),
		Context:        c,
	}
	if c.GetApplicationId() == nil || s.ID.IsZero() {
		return s, &creel.Error{
			Kind: ErrNoApplicationID,
			What: "ApplicationId is not provided in the submission context",
		}
	}
	if s.Queue == "" {
		s.Queue = "default"
	}
	s.Type = shorten(s.Type, maxTypeLength)
	if c.GetAmContainerSpec() == nil {
		return s, Invalid(
			"the submission of %s has no am_container_spec; send an empty one for an unmanaged AM",
			s.ID,
		)
	}
	if n := len(c.GetAmContainerSpec().GetTokensConf()); n > maxTokensConf {
		return s, Invalid(
			"Exceed yarn.resourcemanager.delegation-token.max-conf-size-bytes: %d bytes of configuration, the limit is %d",
			n,
			maxTokensConf,
		)
	}
	if len(s.Tags) > tags.Count {
		return s, Invalid("Too many applicationTags, a maximum of only %d are allowed!", tags.Count)
	}
	for _, tag := range s.Tags {
		if len(tag) > tags.Length {
			return s, Invalid("Tag %s is too long, maximum allowed length of a tag is %d", tag, tags.Length)
		}
		for i := range len(tag) {
			if tag[i] < 0x20 || tag[i] > 0x7e {
				return s, Invalid("A tag can only have ASCII characters! Invalid tag - %s", tag)
			}
		}
	}
	if p := c.GetPriority(); p != nil {
		s.Priority, s.HasPriority = p.GetPriority(), true
	}
	if v := c.GetAttemptFailuresValidityInterval(); v > 0 {
		s.FailuresValidity = milliseconds(v)
	}
	for _, t := range c.GetApplicationTimeouts() {
		if t.GetApplicationTimeoutType() != pb.ApplicationTimeoutTypeProto_APP_TIMEOUT_LIFETIME {
			continue
		}
		if t.GetTimeout() <= 0 {
			return s, Invalid("Invalid application timeout, value=%d for type=LIFETIME", t.GetTimeout())
		}
		s.Lifetime = milliseconds(min(t.GetTimeout(), 1<<40) * 1000)
	}
	if s.Unmanaged {
		return s, nil
	}
	return s, amAsks(c, &s)
}

// appLabel parses the label for asks that name none.
func appLabel(c *pb.ApplicationSubmissionContextProto) rm.LabelExpression {
	if c == nil {
		return rm.LabelExpression{}
	}
	return labelExpression(c.NodeLabelExpression)
}

// ConvertSubmissionUnits is pb.ConvertUnits of the AM's size in a submission.
func ConvertSubmissionUnits(c *pb.ApplicationSubmissionContextProto, types []creel.ResourceType) error {
	if err := pb.ConvertUnits(c.GetResource(), types); err != nil {
		return err
	}
	for _, r := range c.GetAmContainerResourceRequest() {
		if err := pb.ConvertUnits(r.GetCapability(), types); err != nil {
			return err
		}
	}
	return nil
}

// amAsks parses the size of the AM's container: one request for any place, and optional ones for hosts and racks.
// YARN forces all of them to one size, priority 0 and one container.
func amAsks(c *pb.ApplicationSubmissionContextProto, s *rm.Submission) error {
	requests := c.GetAmContainerResourceRequest()
	if len(requests) == 0 {
		if c.GetResource() == nil {
			return &creel.Error{
				Kind: creel.ErrInvalidResource,
				What: "Invalid resource request, no resources requested",
			}
		}
		s.AM = rm.Ask{
			ResourceName:        anyPlace,
			Resource:            pb.ToResource(c.GetResource()),
			Count:               1,
			ExecutionType:       creel.Guaranteed,
			AllocationRequestID: -1,
		}
		return nil
	}
	found := 0
	for _, r := range requests {
		ask := decodeAsk(r)
		ask.Priority, ask.Count, ask.ExecutionType = 0, 1, creel.Guaranteed
		if ask.ResourceName == anyPlace {
			s.AM = ask
			found++
			continue
		}
		s.AMPlaces = append(s.AMPlaces, ask)
	}
	if found != 1 {
		return &creel.Error{
			Kind: creel.ErrInvalidResource,
			What: "Invalid resource request, no resource request specified with *",
			Why:  fmt.Sprintf("%d entries name any place, one must", found),
		}
	}
	for i := range s.AMPlaces {
		s.AMPlaces[i].Resource = s.AM.Resource
	}
	return nil
}

// ContextOf returns the submission message that a machine stored, or nil.
func ContextOf(kept any) *pb.ApplicationSubmissionContextProto {
	c, _ := kept.(*pb.ApplicationSubmissionContextProto)
	return c
}

// Moving returns the submission of an application that moves to another home: the original message, so that unknown
// fields survive. It has the present priority and, if a user changed it, the present queue.
func Moving(h *rm.HeldApp) *pb.ApplicationSubmissionContextProto {
	c := h.App.Context.(*pb.ApplicationSubmissionContextProto)
	queue, priority := h.Moved && c.GetQueue() != string(h.App.Queue), c.GetPriority().GetPriority() != h.App.Priority
	if !queue && !priority {
		return c
	}
	c = proto.Clone(c).(*pb.ApplicationSubmissionContextProto)
	if queue {
		c.Queue = new(string(h.App.Queue))
	}
	if priority {
		c.Priority = pb.FromPriority(h.App.Priority)
	}
	return c
}
