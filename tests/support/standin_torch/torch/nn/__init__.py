from .modules.module import Embedding as Embedding
from .modules.module import Module as Module
