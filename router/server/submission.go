// SPDX-License-Identifier: Apache-2.0

package server

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies"
)

// ReadSubmission converts a submission context to the input of policies, for both protocols.
func ReadSubmission(c *yarnpb.ApplicationSubmissionContextProto, user string) (policies.Submission, error) {
	s := policies.Submission{
		Application: yarnpb.ToApplicationID(c.GetApplicationId()),
		Name:        c.GetApplicationName(),
		User:        user,
		Type:        c.GetApplicationType(),
		Queue:       creel.QueuePath(c.GetQueue()),
		Label:       c.GetNodeLabelExpression(),
		Tags:        c.GetApplicationTags(),
		Size:        yarnpb.ToResource(c.GetResource()),
		Reservation: yarnpb.ToReservationID(c.GetReservationId()),
	}
	if s.Application.IsZero() {
		return s, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "the submission has no application id",
			Try:  "ask for one with getNewApplication first",
		}
	}
	for _, r := range c.GetAmContainerResourceRequest() {
		name := r.GetResourceName()
		if name == "*" {
			s.Size = yarnpb.ToResource(r.GetCapability())
			s.Strict = r.RelaxLocality != nil && !r.GetRelaxLocality()
			if r.NodeLabelExpression != nil {
				s.Label = r.GetNodeLabelExpression()
			}
			continue
		}
		s.Places = append(s.Places, name)
	}
	return s, nil
}
