"""What is watched while a policy learns: the sketch, the predictions, the range of the features."""

import math
from typing import Any

from sketchbandit.arrays import Scalars
from sketchbandit.errors import TooFewDigitsWarning, WorldChangedWarning
from sketchbandit.features import Features, RangeWatch
from sketchbandit.policy.drift import BLOCK, PredictionWatch, loss_of
from sketchbandit.policy.health import Complaints, Health, HealthWatch, mass_to_look_at
from sketchbandit.policy.posterior import Posterior, Step
from sketchbandit.policy.verdicts import (
    dropped_sentence,
    following_sentence,
    offset_sentence,
    out_of_range_sentence,
    world_sentence,
)
from sketchbandit.sketch.accounts import ONE_APPENDED

_FAR, _ENOUGH_REWARDS = 5.0, 100  # deviations from 0, and the number of rewards that it takes to say so
_FOLLOWED = 3.0  # memory lengths after a change until a policy that forgets has adapted


class Watch:
    """The watches of one model, and what they say together."""

    def __init__(self, posterior: Posterior) -> None:
        self.health = HealthWatch()
        self.drift = PredictionWatch()
        self.ranges = RangeWatch()
        self._mass_to_look_at = mass_to_look_at(posterior.sketch, posterior.ridge)

    # -- after every reward ---------------------------------------------------------------------------

    def see(self, step: Step, reward: float, posterior: Posterior, features: Features) -> Complaints:
        """Look at what one reward did, and return the warnings to give."""
        drift = self.drift
        if step.quadratic >= 0.0:
            drift.see(reward, step.error, step.quadratic)
            if len(drift.pending) >= BLOCK:
                return self._look_for_drift(posterior) + self.learned(
                    posterior, features, lossy=not step.change.additive
                )
        if (  # most rounds
            step.change is ONE_APPENDED
            and posterior.rounds < self.health.next_mark
            and posterior.precision.sketch.row_stats.mass < self._mass_to_look_at
        ):
            return ()
        return self.learned(posterior, features, lossy=not step.change.additive)

    def learned(self, posterior: Posterior, features: Features, *, lossy: bool) -> Complaints:
        """Look at the sketch if its health may have changed, after one reward or many."""
        sketch, mass = posterior.sketch, posterior.sketch.row_stats.mass
        is_long = mass >= self._mass_to_look_at
        if not (lossy or is_long or posterior.rounds >= self.health.next_mark):
            return ()
        if is_long:  # look again when the mass has doubled
            self._mass_to_look_at = 2.0 * mass
        forgets = posterior.clock is not None
        found = self.health.look(sketch, posterior.rounds, posterior.ridge, forgets=forgets)
        return found + self._complaints_of_dropped(features)

    def _look_for_drift(self, posterior: Posterior) -> Complaints:
        """Test whether predictions have become worse. The warning comes once; never if the policy forgets."""
        drift, forgets = self.drift, posterior.clock is not None
        drift.close(loss_of(posterior.sketch, posterior.ridge))
        if not drift.has_changed or (drift.changed_at is not None and not forgets):
            return ()
        drift.changed_at = posterior.rounds
        drift.begin()
        return () if forgets else (WorldChangedWarning(world_sentence(drift.changed_at)),)

    def _complaints_of_dropped(self, features: Features) -> Complaints:
        """The warning that columns are dropped, once the scaling is fixed; it comes once."""
        if features.is_warming_up or self.health.has_warned_of_digits or not features.dropped:
            return ()
        self.health.has_warned_of_digits = True
        return (TooFewDigitsWarning(dropped_sentence(features.dropped)),)

    def warn_again(self) -> None:
        """Give warnings again, because everything was learned anew with another scaling."""
        self.health.has_warned = self.health.has_warned_of_digits = False

    # -- the report -----------------------------------------------------------------------------------

    def report(self, posterior: Posterior, features: Features) -> Health:
        """The present ``Health``."""
        forgets = posterior.clock is not None
        found = self.health.report(posterior.sketch, posterior.rounds, posterior.ridge, forgets=forgets)
        if found.enough_digits and not found.heading_for_linear_regret and _lie_far_from_zero(posterior):
            scale = posterior.scale
            found = found._replace(sentence=offset_sentence(scale.mean, scale.deviation))
        found = found._replace(**self.of_world(posterior, found.sentence))
        if features.scaling is None:
            return found
        outside, dropped = features.named(self.ranges.left), features.dropped
        found = found._replace(scaling=features.description, out_of_range=outside)
        if dropped and found.enough_digits:
            return found._replace(sentence=dropped_sentence(dropped), enough_digits=False)
        if outside and found.enough_digits and not found.heading_for_linear_regret:
            sentence = out_of_range_sentence(outside, features.dim)
            return found._replace(
                sentence=f"{sentence} {found.sentence}" if found.world_changed else sentence
            )
        return found

    def of_world(self, posterior: Posterior, sentence: str) -> dict[str, Any]:
        """The fields of ``Health`` about the predictions, and the sentence."""
        noticed, memory = self.drift.changed_at, math.inf
        if noticed is None:
            return {}
        if posterior.forget is not None:
            memory = _FOLLOWED / (1.0 - posterior.forget)
            sentence = f"{following_sentence(noticed)} {sentence}"
        else:
            sentence = world_sentence(noticed)
        if posterior.rounds - noticed > memory:
            return {"changed_at": noticed}
        return {"world_changed": True, "changed_at": noticed, "sentence": sentence}

    # -- merging and files ------------------------------------------------------------------------------

    def add(self, other: "Watch") -> None:
        """Merge with a watch that ran in parallel."""
        self.health.add(other.health)
        self.drift.add(other.drift)
        self.ranges.add(other.ranges)

    def dump(self) -> Scalars:
        """JSON values that ``restore`` takes."""
        return {**self.health.dump(), "world": self.drift.dump(), "ranges": self.ranges.dump()}

    def restore(self, scalars: Scalars) -> None:
        """Restore what ``dump`` returned."""
        self.health = HealthWatch.undump(scalars)
        if "world" in scalars:  # not in files of 0.12
            self.drift = PredictionWatch.undump(scalars["world"])
        if "ranges" in scalars:  # not in files of 0.14
            self.ranges = RangeWatch.undump(scalars["ranges"])


def _lie_far_from_zero(posterior: Posterior) -> bool:
    """Whether the mean reward is so many deviations that a policy without a baseline learns slowly."""
    scale = posterior.scale
    is_likely = not scale.baseline and posterior.estimate.takes_baseline and scale.count >= _ENOUGH_REWARDS
    return is_likely and 0.0 < _FAR * scale.deviation < abs(scale.mean)
