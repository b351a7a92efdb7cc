# What type checkers see: one line per public name.
from cocopt.algorithms.adagrad import AdaGrad as AdaGrad
from cocopt.algorithms.base import Learner as Learner
from cocopt.algorithms.base import Round as Round
from cocopt.algorithms.clasp import CLASP as CLASP
from cocopt.algorithms.clasp_f import CLASPF as CLASPF
from cocopt.algorithms.jenatton import Jenatton as Jenatton
from cocopt.algorithms.mahdavi import Mahdavi as Mahdavi
from cocopt.algorithms.recoo import RECOO as RECOO
from cocopt.algorithms.switch import Switch as Switch
from cocopt.algorithms.yu_neely import YuNeely as YuNeely
from cocopt.algorithms.yuan_lamperski import YuanLamperski as YuanLamperski
