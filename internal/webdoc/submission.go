// SPDX-License-Identifier: Apache-2.0

package webdoc

import (
	"encoding/xml"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"google.golang.org/protobuf/proto"
)

// Submission is the part of a submission document that decides where an application runs, by its JSON and XML names. A
// router reads this part, and a ResourceManager the whole document, of which this is a part.
type Submission struct {
	XMLName     xml.Name `json:"-" xml:"application-submission-context"`
	ID          Text     `json:"application-id" xml:"application-id"`
	Name        Text     `json:"application-name" xml:"application-name"`
	Queue       Text     `json:"queue" xml:"queue"`
	Type        Text     `json:"application-type" xml:"application-type"`
	AMLabel     Text     `json:"am-container-node-label-expression" xml:"am-container-node-label-expression"`
	Label       Text     `json:"app-node-label-expression" xml:"app-node-label-expression"`
	Reservation Text     `json:"reservation-id" xml:"reservation-id"`
	Tags        struct {
		Tag Many[Text] `json:"tag" xml:"tag"`
	} `json:"application-tags" xml:"application-tags"`
	Resource struct {
		Memory Long `json:"memory" xml:"memory"`
		VCores Int  `json:"vCores" xml:"vCores"`
	} `json:"resource" xml:"resource"`
}

// Context converts the document to the message of a submission by RPC. The caller has parsed the ids.
func (s *Submission) Context(id creel.ApplicationID) *yarnpb.ApplicationSubmissionContextProto {
	c := &yarnpb.ApplicationSubmissionContextProto{
		ApplicationId:   yarnpb.FromApplicationID(id),
		ApplicationName: (*string)(&s.Name),
		Resource:        yarnpb.FromResource(creel.NewResource(int64(s.Resource.Memory), int64(s.Resource.VCores))),
		ApplicationTags: Texts(s.Tags.Tag),
		ApplicationType: (*string)(&s.Type), // as Hadoop: a submission without a type has none
		// As in Hadoop, "" is the partition without a label, not the queue's default.
		NodeLabelExpression: (*string)(&s.Label),
	}
	if s.Queue != "" {
		c.Queue = (*string)(&s.Queue)
	}
	if s.AMLabel != "" {
		c.AmContainerResourceRequest = []*yarnpb.ResourceRequestProto{
			{
				Priority: yarnpb.FromPriority(0), ResourceName: proto.String("*"),
				Capability: c.Resource, NumContainers: proto.Int32(1), NodeLabelExpression: (*string)(&s.AMLabel),
			},
		}
	}
	return c
}
