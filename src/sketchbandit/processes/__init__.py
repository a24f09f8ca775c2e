"""Work in processes of its own: tasks and answers are lines of JSON, nothing is pickled."""

from sketchbandit.processes.pool import Answer, NoAnswer, ask_all
from sketchbandit.processes.serving import Tell, serve

__all__ = ["Answer", "NoAnswer", "Tell", "ask_all", "serve"]
