"""Work in processes of its own: tasks and answers are lines of JSON, nothing is pickled."""

from sketchbandit.processes.pool import ONE_THREAD, Answer, NoAnswer, ask_all
from sketchbandit.processes.serving import Tell, serve

__all__ = ["ONE_THREAD", "Answer", "NoAnswer", "Tell", "ask_all", "serve"]
